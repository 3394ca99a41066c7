"""What a store remembers of the environment that filled it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from storage.errors import CorruptStoreError
from storage.spaces import space_from_json, space_to_json

if TYPE_CHECKING:
    from gymnasium import Space

__all__ = ["EnvironmentSpec"]


@dataclass(frozen=True)
class EnvironmentSpec:
    """The name, spaces and making of an environment.

    ``kwargs`` and ``wrappers`` are JSON values that say how to make it again.
    """

    id: str
    observation_space: Space[Any]
    action_space: Space[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)
    wrappers: list[Any] = field(default_factory=list)
    max_episode_steps: int | None = None

    @classmethod
    def from_env(cls, env: Any) -> EnvironmentSpec:
        """Describe a gymnasium environment, or one lane of a vector environment."""
        spec = getattr(env, "spec", None)
        observation_space = getattr(env, "single_observation_space", env.observation_space)
        action_space = getattr(env, "single_action_space", env.action_space)
        if spec is None:
            name = type(getattr(env, "unwrapped", env)).__qualname__
            return cls(name, observation_space, action_space)
        wrappers = [
            {"name": item.name, "entry_point": item.entry_point, "kwargs": _plain(item.kwargs)}
            for item in spec.additional_wrappers
        ]
        return cls(
            id=spec.id,
            observation_space=observation_space,
            action_space=action_space,
            kwargs=_plain(dict(spec.kwargs)),
            wrappers=wrappers,
            max_episode_steps=spec.max_episode_steps,
        )

    def to_json(self) -> dict[str, Any]:
        """The description as JSON values."""
        return {
            "id": self.id,
            "kwargs": _plain(self.kwargs),
            "wrappers": _plain(self.wrappers),
            "max_episode_steps": self.max_episode_steps,
            "observation_space": space_to_json(self.observation_space),
            "action_space": space_to_json(self.action_space),
        }

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> EnvironmentSpec:
        """The description that ``to_json`` gave; raises CorruptStoreError for any other.

        Nothing that it names is imported or made, but for the spaces.
        """
        name, limit = described["id"], described["max_episode_steps"]
        kwargs, wrappers = described["kwargs"], described["wrappers"]
        if not (isinstance(name, str) and 0 < len(name) <= 1000 and name.isprintable()):
            raise _wrong("id", "a name of up to 1,000 characters that can be printed")
        if not (isinstance(kwargs, dict) and isinstance(wrappers, list)):
            raise _wrong("kwargs or wrappers", "an object and a list")
        if limit is not None and not (type(limit) is int and 0 < limit < 2**63):
            raise _wrong("max_episode_steps", "a number from 1, or null")
        return cls(
            id=name,
            observation_space=space_from_json(described["observation_space"], "observation"),
            action_space=space_from_json(described["action_space"], "action"),
            kwargs=dict(kwargs),
            wrappers=list(wrappers),
            max_episode_steps=limit,
        )


def _wrong(field: str, wanted: str) -> CorruptStoreError:
    return CorruptStoreError(
        f"the environment's {field} is not {wanted}; restore the metadata from a copy"
    )


def _plain(value: Any) -> Any:
    """The value with everything that JSON cannot hold replaced by its text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return value
    return repr(value)
