"""The longest that an episode of an environment can be."""

from __future__ import annotations

import math
from typing import Any

import gymnasium

from training.environments.atari_settings import AtariSettings

__all__ = ["episode_limit"]

_FRAMES = "max_num_frames_per_episode"


def episode_limit(env: gymnasium.Env[Any, Any]) -> int | None:
    """Steps after which every episode of ``env`` is truncated; None where nothing limits them.

    The limits that count are gymnasium's ``TimeLimit``, at any depth, and the frame cap of Atari
    games.
    """
    limits = []
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, gymnasium.wrappers.TimeLimit):
            limits.append(int(layer._max_episode_steps))
        layer = layer.env
    frames = _frame_limit(layer)
    return min([*limits, frames]) if frames is not None else min(limits, default=None)


def _frame_limit(env: Any) -> int | None:
    settings = getattr(env, "settings", None)
    if isinstance(settings, AtariSettings):
        return settings.max_steps
    kwargs = {} if env.spec is None else env.spec.kwargs
    frames, skip = kwargs.get(_FRAMES), kwargs.get("frameskip")
    if frames is None or skip is None:
        return None
    fewest = skip if isinstance(skip, int) else min(skip)
    return math.ceil(float(frames) / float(fewest))
