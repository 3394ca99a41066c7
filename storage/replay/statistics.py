"""Moments of what the window holds, for the scaling of observations and rewards.

States are standardised and rewards divided by the root of their mean square; both need moments
over all steps of the memory, computed in one pass over the mapped columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.kernel import Floats, Index, Integers, kernel, load_f4, load_f8
from storage.replay.tables import LENGTH, REWARD, SEGMENT, START

if TYPE_CHECKING:
    from storage.replay.window import Window
    from storage.schema import Schema

__all__ = ["WindowStatistics", "column_moments", "mean_square_reward", "window_statistics"]

BLOCK = 256
"""Rows whose moments are taken in two passes while they are in cache."""


@dataclass(frozen=True, slots=True)
class WindowStatistics:
    """Moments over the window's steps (closing rows left out)."""

    mean: Any
    """float64, shaped like an observation; nested spaces: a dict as in batches."""
    variance: Any
    """float64, of the population. Leaves that are not float32 or float64 (frames, categories)
    have mean 0 and variance 1."""
    reward_second_moment: float
    """Mean of the squared, unscaled rewards."""
    n: int
    """Number of steps."""


@kernel
def _load(address: Index, i: Index, width: Index) -> Index:
    if width == 8:
        return load_f8(address + 8 * i)
    return np.float64(load_f4(address + 4 * i))


@kernel
def _block_moments(
    address: Index, rows: Index, width: Index, mean: Floats, squares: Floats
) -> None:
    """Mean and sum of squared deviations of each element over consecutive rows."""
    size = mean.size
    mean[:] = 0.0
    squares[:] = 0.0
    for row in range(rows):
        for j in range(size):
            mean[j] += _load(address, row * size + j, width)
    mean /= rows
    for row in range(rows):
        for j in range(size):
            deviation = _load(address, row * size + j, width) - mean[j]
            squares[j] += deviation * deviation


@kernel
def column_moments(
    episodes: Integers,
    segments: Integers,
    steps: Integers,
    ends: Integers,
    column: Index,
    width: Index,
    mean: Floats,
    variance: Floats,
) -> None:
    """Fill mean and population variance, float64 [elements], of one float column.

    `width` is the bytes of an element, 4 or 8. Blocks are merged by the formula of Chan, Golub &
    LeVeque (1979), which stays accurate where the mean is large beside the deviation.
    """
    block_mean, block_squares = np.empty(mean.size), np.empty(mean.size)
    mean[:] = 0.0
    variance[:] = 0.0
    seen = 0
    position = ends[0]
    while position < ends[1]:
        episode = episodes[steps[position & (steps.size - 1)] >> 32]
        base = segments[episode[SEGMENT], column]
        for first in range(0, episode[LENGTH], BLOCK):
            rows = min(BLOCK, episode[LENGTH] - first)
            address = base + (episode[START] + first) * mean.size * width
            _block_moments(address, rows, width, block_mean, block_squares)
            total = seen + rows
            shift = block_mean - mean
            mean += shift * (rows / total)
            variance += block_squares + shift * shift * (np.float64(seen) * rows / total)
            seen = total
        position += episode[LENGTH]
    variance /= max(seen, 1)


@kernel
def mean_square_reward(
    episodes: Integers, segments: Integers, steps: Integers, ends: Integers
) -> Index:
    """Mean of r² over the window's steps."""
    total = 0.0
    position = ends[0]
    while position < ends[1]:
        episode = episodes[steps[position & (steps.size - 1)] >> 32]
        rewards = segments[episode[SEGMENT], REWARD]
        for row in range(episode[START], episode[START] + episode[LENGTH]):
            reward = load_f8(rewards + 8 * row)
            total += reward * reward
        position += episode[LENGTH]
    return total / max(ends[1] - ends[0], 1)


def window_statistics(schema: Schema, window: Window) -> WindowStatistics:
    """Moments over all steps of a window that is not empty."""
    means, variances = {}, {}
    for leaf in schema.observation:
        column = schema.column(leaf.name)
        mean, variance = np.zeros(column.shape), np.ones(column.shape)
        if column.dtype.kind == "f" and column.dtype.itemsize in (4, 8):
            column_moments(
                window.episodes,
                window.segments.table,
                window.steps,
                window.ends,
                window.segments.column(leaf.name),
                column.dtype.itemsize,
                mean.reshape(-1),
                variance.reshape(-1),
            )
        means[leaf.name.removeprefix("observation.")] = np.broadcast_to(mean, leaf.shape)
        variances[leaf.name.removeprefix("observation.")] = np.broadcast_to(variance, leaf.shape)
    table = window.segments.table
    square = mean_square_reward(window.episodes, table, window.steps, window.ends)
    nested = tuple(means) != ("observation",)
    moments: tuple[Any, Any] = (means, variances)
    if not nested:
        moments = (means["observation"], variances["observation"])
    return WindowStatistics(*moments, float(square), window.n_steps)
