from __future__ import annotations

import gymnasium
import pytest

from storage.errors import EnvironmentNotFoundError
from training.environments.environment import make_environment
from training.environments.environment_config import EnvironmentConfig, WrapperConfig


@pytest.mark.parametrize(
    "identifier",
    [
        "tests.training.zoo:ZooDrift-v0",
        "tests.training.zoo.Drift",
        "tests.training.zoo:make_drift",
    ],
)
def test_modules_classes_and_factories(identifier):
    env = make_environment(EnvironmentConfig(identifier, {"longest": 9}))
    assert env.unwrapped.longest == 9
    assert type(env.unwrapped).__name__ == "Drift"


def test_a_name_without_version_is_the_newest():
    assert make_environment(EnvironmentConfig("Pendulum")).spec.id == "Pendulum-v1"


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("Hoper-v5", "Hopper-v5"),
        ("hopper-v5", "Hopper-v5"),
        ("tests.training.zoo:ZoDrift-v0", "ZooDrift-v0"),
        ("no_such_module:Thing-v0", "no_such_module"),
        ("tests.training.zoo.Nothing", "Nothing"),
    ],
)
def test_unknown_names_list_close_ones(identifier, expected):
    with pytest.raises(EnvironmentNotFoundError, match=expected):
        make_environment(EnvironmentConfig(identifier))


def test_unknown_wrapper_lists_close_ones():
    config = EnvironmentConfig("Pendulum-v1", wrappers=[WrapperConfig("ClipActions")])
    with pytest.raises(EnvironmentNotFoundError, match="ClipAction"):
        make_environment(config)


def test_a_package_that_the_module_of_an_id_needs_is_named(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import no_such_physics\n")
    monkeypatch.syspath_prepend(tmp_path)
    gymnasium.register("HalfInstalled-v0", entry_point="half_installed:Env")
    with pytest.raises(EnvironmentNotFoundError, match=r"HalfInstalled-v0.*no_such_physics"):
        make_environment(EnvironmentConfig("HalfInstalled-v0"))
