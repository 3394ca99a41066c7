"""Which observations are frames, and how their axes lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from gymnasium import Space

__all__ = ["LEAST_PIXELS", "FrameShape", "frame_shape"]

LEAST_PIXELS = 36
"""Height and width from which the convolutions leave something without padding."""


class FrameShape(NamedTuple):
    """Sizes of one observation of frames."""

    channels: int
    """Stacked frames, or colours."""
    height: int
    width: int
    channels_first: bool
    """Whether the environment shows (channels, height, width), not (height, width, channels)."""


def frame_shape(space: Space[Any]) -> FrameShape | None:
    """The sizes of frames, where a space is one uint8 box of three dimensions and large enough.

    The smaller one of the first and the last axis counts the channels.
    """
    from gymnasium.spaces import Box

    if not (isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) == 3):
        return None
    first, middle, last = (int(size) for size in space.shape)
    whole = (
        FrameShape(first, middle, last, True)
        if first <= last
        else FrameShape(last, first, middle, False)
    )
    return whole if min(whole.height, whole.width) >= LEAST_PIXELS else None
