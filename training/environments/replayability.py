"""Whether an environment shows the same again for the same seed and actions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NotReplayableWarning", "unreplayable_wrappers", "warn_unreplayable"]


class NotReplayableWarning(UserWarning):
    """An environment whose outputs depend on more than its seed and actions."""


def unreplayable_wrappers(env: gymnasium.Env[Any, Any]) -> list[str]:
    """Names of the wrappers of ``env`` that keep running statistics, outermost first.

    Such a wrapper shows other observations or rewards for the same seed and actions, so that an
    episode cannot be restored by replaying its actions.
    """
    return [type(layer).__name__ for layer in _layers(env) if _keeps_statistics(layer)]


def warn_unreplayable(env: gymnasium.Env[Any, Any]) -> None:
    """Warns, once a process for each set of wrappers, when ``env`` cannot be replayed."""
    names = unreplayable_wrappers(env)
    if names:
        warnings.warn(
            f"{', '.join(names)} keeps running statistics: episodes of this environment cannot be "
            "replayed from their seed, so a resumed run is not bit-exact. Sharpwave scales "
            "observations and rewards itself; remove the wrapper unless you need it.",
            NotReplayableWarning,
            stacklevel=2,
        )


def _layers(env: Any) -> Iterator[Any]:
    while env is not None:
        yield env
        env = getattr(env, "env", None) if isinstance(env, gymnasium.Wrapper) else None


def _keeps_statistics(layer: Any) -> bool:
    known = (gymnasium.wrappers.NormalizeObservation, gymnasium.wrappers.NormalizeReward)
    if isinstance(layer, known):
        return True
    return any(hasattr(value, "update_from_moments") for value in vars(layer).values())
