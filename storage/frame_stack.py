"""Stacks of frames: how environments show them, and back from frames that are stored once.

A stack holds the k newest frames of an episode, the newest one last. Before an episode has k
frames, padding stands in front of its first one: zeros, or that frame again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.errors import ConfigError, SchemaMismatchError
from storage.spaces import Leaf

__all__ = ["check_first_stack", "check_stack_settings", "check_stacked", "stacks_of"]

_PADDINGS = (None, "zero", "repeat")


def check_stack_settings(frame_stack: int | None, padding: str | None) -> None:
    """Raise ConfigError for a number of frames or a padding that cannot be."""
    if frame_stack is not None and (type(frame_stack) is not int or frame_stack < 1):
        raise ConfigError(f"frame_stack={frame_stack}: give the number of stacked frames, from 1")
    if padding not in _PADDINGS:
        raise ConfigError(f"first_stack_padding={padding!r}: choose 'zero', 'repeat' or None")
    if frame_stack is None and padding is not None:
        raise ConfigError(
            f"first_stack_padding={padding!r} without frame_stack: give the number of frames that "
            "the environment stacks, or leave the padding out"
        )
    if frame_stack is not None and frame_stack > 1 and padding is None:
        raise ConfigError(
            f"frame_stack={frame_stack} without first_stack_padding: say what the environment "
            "shows before an episode's first frame, 'zero' (ALE's vector environments) or "
            "'repeat' (gymnasium's FrameStackObservation with padding_type 'reset')"
        )


def check_stacked(leaves: Iterable[Leaf], frame_stack: int) -> None:
    """Raise ConfigError unless the first axis of every leaf counts the stacked frames."""
    for leaf in leaves:
        if leaf.shape[:1] != (frame_stack,):
            raise ConfigError(
                f"frame_stack={frame_stack}, but {leaf.name!r} has shape {leaf.shape}, whose first "
                f"axis does not hold {frame_stack} frames. Give frame_stack only where the "
                "environment stacks every part of its observation, on the first axis."
            )


def check_first_stack(name: str, stack: npt.NDArray[Any], padding: str | None) -> None:
    """Raise SchemaMismatchError unless an episode's first stack [k, …] is padded as declared."""
    older, newest = stack[:-1], stack[-1]
    expected = np.zeros_like(newest) if padding == "zero" else newest
    if np.array_equal(older, np.broadcast_to(expected, older.shape)):
        return
    declared = "zeros" if padding == "zero" else "repeats of the first frame"
    raise SchemaMismatchError(
        f"{name}: the first stack of an episode must hold {declared} before its newest frame, as "
        f"the store's first_stack_padding={padding!r} says, and it holds others; its stacks could "
        "not be rebuilt. Create the store with the environment's own padding, and let nothing act "
        "between the stacking and the reset."
    )


def stacks_of(frames: npt.NDArray[Any], frame_stack: int, padding: str | None) -> npt.NDArray[Any]:
    """The stacks [n, k, …] that an episode showed, from its frames [n, …]; read-only.

    Takes one copy of the frames: neighbouring stacks share their memory.
    """
    first = np.zeros_like(frames[:1]) if padding == "zero" else frames[:1]
    padded = np.concatenate([np.repeat(first, frame_stack - 1, axis=0), frames])
    windows = np.lib.stride_tricks.sliding_window_view(padded, frame_stack, axis=0)
    return np.moveaxis(windows, -1, 1)
