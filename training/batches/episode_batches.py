"""Rows of a committed episode as batches, for whatever an agent computes of new episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.frame_stack import stacks_of
from storage.replay import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from storage.episode import Episode

__all__ = ["episode_batches"]

CHUNK = 256
"""Steps of a batch: 36 MB of stacked Atari frames with the next ones."""


def episode_batches(episode: Episode) -> Iterator[Batch]:
    """The steps of an episode in order, 256 at most in a batch, laid out like drawn ones.

    Stacks are put together from the frames of a chunk, however long the episode. Sampling weights
    are 1; the columns of the schema that batches have no field for are in ``extra``.
    """
    for first in range(0, len(episode), CHUNK):
        yield _batch(episode, first, min(first + CHUNK, len(episode)))


def _batch(episode: Episode, first: int, end: int) -> Batch:
    batch = Batch()
    columns, record = episode.columns, episode.record
    batch.segment = np.full(end - first, record.segment, np.int64)
    batch.row = np.arange(record.start + first, record.start + end)
    batch.sampling_weight = np.ones(end - first, np.float32)
    batch.extra = {}
    seen = {
        leaf.name.removeprefix("observation."): _shown(episode, leaf.name, first, end)
        for leaf in episode.schema.observation
    }
    batch.observation = _nested(seen, "observation", slice(None, -1))
    batch.next_observation = _nested(seen, "observation", slice(1, None))
    actions = {
        leaf.name.removeprefix("action."): columns[leaf.name][first:end]
        for leaf in episode.schema.action
    }
    batch.action = _nested(actions, "action", slice(None))
    for name, column in columns.items():
        if name.partition(".")[0] in ("observation", "action"):
            continue
        if name in Batch.__slots__:
            setattr(batch, name, column[first:end])
        else:
            batch.extra[name] = column[first:end]
    return batch


def _shown(episode: Episode, name: str, first: int, end: int) -> NDArray[Any]:
    """What the environment showed from step ``first`` to the observation behind ``end`` - 1."""
    rows, stacked = episode.columns[name], episode.schema.frame_stack
    if stacked is None:
        return rows[first : end + 1].copy()
    begin = max(first - stacked + 1, 0)
    frames = rows[begin : end + 1]
    stacks = stacks_of(frames, stacked, episode.schema.first_stack_padding)
    return stacks[first - begin :].copy()


def _nested(values: dict[str, NDArray[Any]], whole: str, rows: slice) -> Any:
    """An array, or a dictionary of arrays where the space is nested."""
    parts = {name: array[rows] for name, array in values.items()}
    return parts[whole] if tuple(parts) == (whole,) else parts
