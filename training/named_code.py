"""What a store or a checkpoint names is not imported, unless the user names it as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium

from storage.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

    from storage import EnvironmentSpec
    from training.environments.environment_config import EnvironmentConfig

__all__ = ["refuse_checkpoint_code", "refuse_named_code"]

_DELEGATES = ("GymV21Environment", "GymV26Environment")
"""Registered environments that import another one, which their keyword arguments name."""
_WRITERS = ("RecordVideo",)
"""Wrappers that write files to a folder, which their keyword arguments name."""


def refuse_named_code(kept: EnvironmentSpec, path: Path, named: str | None = None) -> None:
    """Refuses to make the environment of a store where that would import what the store names.

    A store may come from anybody. What gymnasium has registered, and its own wrappers, are code of
    this machine; a module path is whatever its writer liked.

    Args:
        kept: The store's description of its environment.
        path: The store, for the message.
        named: The user's own ``environment.id``, which may name any module.

    Raises:
        ConfigError: saying what to name in the settings instead.
    """
    if kept.id != named and _names_code(kept.id):
        raise ConfigError(
            f"{path} names its environment {kept.id!r}, which is code, and nothing that a store "
            f"names is imported; where you trust it, say --environment.id={kept.id}"
        )
    for wrapper in kept.wrappers:
        name = wrapper.get("class_path") if isinstance(wrapper, dict) else None
        if name is not None and not _is_gymnasiums(name):
            raise ConfigError(
                f"{path} names the wrapper {str(name)[:200]!r}, which is code, and nothing that a "
                "store names is imported; where you trust it, name it in environment.wrappers"
            )


def refuse_checkpoint_code(
    kept: EnvironmentConfig, path: Path, trusted: Container[str] = ()
) -> None:
    """Refuses to make the environment of a checkpoint where that would import what it names.

    Args:
        kept: The environment's settings in the checkpoint.
        path: The checkpoint, for the message.
        trusted: Ids and class paths that the user has named: in the run's settings, or by hand.

    Raises:
        ConfigError: saying what to name.
    """
    named = [kept.id] if _names_code(kept.id) else []
    named += [each.class_path for each in kept.wrappers if not _is_gymnasiums(each.class_path)]
    for name in named:
        if name not in trusted:
            raise ConfigError(
                f"{path} names {name[:200]!r}, which is code, and nothing that a checkpoint names "
                f"is imported; where you trust it, say --trust={name[:200]}"
            )


def _names_code(identifier: str) -> bool:
    if identifier.startswith(_DELEGATES):
        return True
    return ":" in identifier or ("." in identifier and identifier not in gymnasium.registry)


def _is_gymnasiums(name: Any) -> bool:
    """Whether a class path is that of a wrapper of gymnasium that touches no file."""
    if not isinstance(name, str):
        return False
    bare = name.removeprefix("gymnasium.wrappers.")
    return bare in gymnasium.wrappers.__all__ and bare not in _WRITERS
