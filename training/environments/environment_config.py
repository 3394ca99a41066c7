"""Which environment a run acts in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from storage.errors import ConfigError

__all__ = ["EnvironmentConfig", "WrapperConfig"]


@dataclass(frozen=True, slots=True)
class WrapperConfig:
    """One environment wrapper.

    Args:
        class_path: Class path of the wrapper; a bare name is looked up in ``gymnasium.wrappers``.
        kwargs: Keyword arguments of the wrapper besides the environment.
    """

    class_path: str
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnvironmentConfig:
    """Which environment to act in.

    Args:
        id: Gymnasium id, ``Atari/Game``, ``module:EnvId``, or class path of an environment class or
            factory.
        kwargs: Keyword arguments of the environment.
        wrappers: Wrappers, the innermost first.
    """

    id: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    wrappers: list[WrapperConfig] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.id:
            raise ConfigError("environment.id is empty; name an environment such as Hopper-v5")
