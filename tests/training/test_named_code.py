from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from storage.errors import ConfigError
from tests.storage.zoo import tiny_spec
from training.environments.environment_config import EnvironmentConfig, WrapperConfig
from training.named_code import refuse_checkpoint_code, refuse_named_code

STORE = Path("runs/theirs/store")


def kept(identifier: str, *wrappers: Any) -> Any:
    return dataclasses.replace(tiny_spec(), id=identifier, wrappers=list(wrappers))


def wrapped(class_path: Any, **kwargs: Any) -> dict[str, Any]:
    return {"class_path": class_path, "kwargs": kwargs}


@pytest.mark.parametrize(
    "identifier", ["evil:Env", "evil.sub:Env-v0", "evil.envs.Env", "GymV26Environment-v0", ":x"]
)
def test_an_id_that_names_code_is_not_followed(identifier: str) -> None:
    with pytest.raises(ConfigError, match=f"runs/theirs/store.*--environment.id={identifier}"):
        refuse_named_code(kept(identifier), STORE)
    with pytest.raises(ConfigError):
        refuse_named_code(kept(identifier), STORE, named="Hopper-v5")
    refuse_named_code(kept(identifier), STORE, named=identifier)  # the user names it, too


@pytest.mark.parametrize("identifier", ["Hopper-v5", "Hopper", "ALE/Pong-v5", "NoSuch-v0"])
def test_ids_of_the_registry_are_no_code(identifier: str) -> None:
    refuse_named_code(kept(identifier, wrapped("ClipAction")), STORE)
    refuse_named_code(kept(identifier, wrapped("gymnasium.wrappers.TimeLimit", n=3)), STORE)
    refuse_named_code(kept(identifier, {"name": "x", "entry_point": "evil:W"}, 3), STORE)


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "evil:Wrap",
        "gymnasium.wrappers.utils.x",
        "gymnasium.envs.Env",
        "RecordVideo",
        "gymnasium.wrappers.RecordVideo",
        "np",
        "",
        "__doc__",
        3,
        ["a"],
    ],
)
def test_a_wrapper_that_names_code_is_not_followed(name: Any) -> None:
    with pytest.raises(ConfigError, match=r"runs/theirs/store names the wrapper"):
        refuse_named_code(kept("Hopper-v5", wrapped(name)), STORE, named="Hopper-v5")


def test_a_checkpoint_s_environment_and_wrappers_are_imported_only_where_both_are_named() -> None:
    path = Path("theirs.ckpt")
    plain = EnvironmentConfig("Hopper-v5", wrappers=[WrapperConfig("ClipAction")])
    refuse_checkpoint_code(plain, path)
    evil = EnvironmentConfig("evil:Env", wrappers=[WrapperConfig("os.system")])
    for trusted, name in [((), "evil:Env"), (["evil:Env"], "os.system"), (["evil"], "evil:Env")]:
        with pytest.raises(ConfigError, match=f"theirs.ckpt names '{name}'.*--trust={name}"):
            refuse_checkpoint_code(evil, path, trusted)
    refuse_checkpoint_code(evil, path, ["evil:Env", "os.system"])
