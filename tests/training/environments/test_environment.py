from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import pytest

from storage.errors import ConfigError, EnvironmentNotFoundError
from training.environments.environment import make_environment
from training.environments.environment_config import EnvironmentConfig, WrapperConfig


def test_gymnasium_ids_are_made_with_kwargs_and_wrappers_in_order():
    config = EnvironmentConfig(
        "Pendulum-v1",
        {"g": 3.5},
        [
            WrapperConfig("ClipAction"),
            WrapperConfig("gymnasium.wrappers.TimeLimit", {"max_episode_steps": 7}),
        ],
    )
    env = make_environment(config)
    assert env.unwrapped.g == 3.5
    assert isinstance(env, gymnasium.wrappers.TimeLimit)
    assert isinstance(env.env, gymnasium.wrappers.ClipAction)


def test_mujoco_leaves_no_log_and_prints_nothing(tmp_path: Path):
    """HalfCheetah's model warns when compiled; an absurd velocity makes the simulation unstable."""
    script = (
        "import numpy as np\n"
        "from training.environments.environment import make_environment\n"
        "from training.environments.environment_config import EnvironmentConfig\n"
        "env = make_environment(EnvironmentConfig('HalfCheetah-v5'))\n"
        "env.reset(seed=0)\n"
        "env.unwrapped.data.qvel[:] = 1e12\n"
        "env.step(env.action_space.sample())\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


def broken(**_):
    raise RuntimeError("no display")


def leaving():
    raise SystemExit(3)


def warned():
    warnings.warn("the display driver is old", stacklevel=1)
    raise RuntimeError("no picture")


def lacking():
    raise gymnasium.error.DependencyNotInstalled("pip install gymnasium[box2d]")


def nothing(env):
    return 5


_HERE = "tests.training.environments.test_environment"


@pytest.mark.parametrize(
    ("identifier", "kwargs", "wrappers", "error", "message"),
    [
        ("Pendulum-v1", {"h": 1}, [], ConfigError, "environment.kwargs {'h': 1}: TypeError.*'h'"),
        (f"{_HERE}:broken", {}, [], ConfigError, "RuntimeError: no display; correct env"),
        (f"{_HERE}.leaving", {}, [], ConfigError, "SystemExit: 3"),
        (f"{_HERE}.lacking", {}, [], EnvironmentNotFoundError, r"pip install gymnasium\[box2d\]"),
        ("os:getcwd", {}, [], EnvironmentNotFoundError, "gives a str, which is no gymnasium.Env"),
        ("os:sep", {}, [], EnvironmentNotFoundError, "no class or function but str"),
        ("gymnasium.Env", {}, [], EnvironmentNotFoundError, "no observation_space"),
        (":", {}, [], EnvironmentNotFoundError, "'' cannot be imported"),
        (":Hopper-v5", {}, [], EnvironmentNotFoundError, "'' cannot be imported"),
        (".a:b", {}, [], EnvironmentNotFoundError, "'.a' cannot be imported"),
        ("..", {}, [], EnvironmentNotFoundError, "no environment is called '..'"),
        ("Pendulum-v1", {}, ["TimeLimit"], ConfigError, "wrapper 'TimeLimit' .*max_episode_steps"),
        ("Pendulum-v1", {}, [f"{_HERE}.nothing"], EnvironmentNotFoundError, "gives a int"),
        ("Pendulum-v1", {}, [f"{_HERE}._HERE"], EnvironmentNotFoundError, "function but str"),
        ("Pendulum-v1", {}, [".."], EnvironmentNotFoundError, "does not exist"),
    ],
)
def test_what_cannot_be_made_is_one_error(identifier, kwargs, wrappers, error, message):
    named = [WrapperConfig(each) for each in wrappers]
    with pytest.raises(error, match=message):
        make_environment(EnvironmentConfig(identifier, kwargs, named))


def test_what_was_warned_of_before_it_failed_is_shown():
    with (
        pytest.warns(UserWarning, match="the display driver is old"),
        pytest.raises(ConfigError, match="no picture"),
    ):
        make_environment(EnvironmentConfig(f"{_HERE}:warned"))


def test_an_old_version_is_said_once_and_plainly():
    """Both ids are of one class: gymnasium calls the older one out of date."""
    for version in (0, 1):
        gymnasium.register(f"AgedDrift-v{version}", entry_point="tests.training.zoo:Drift")
    with warnings.catch_warnings(record=True) as caught:
        for _ in range(3):
            make_environment(EnvironmentConfig("AgedDrift-v0"))
    assert "AgedDrift-v0 is out of date" in str(caught[0].message)
    assert [str(each.message).count("\x1b") for each in caught] == [0]
