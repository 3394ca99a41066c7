"""Our replay view behind the face of the peers' buffers, full of the same kind of transitions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.cheetah import EPISODE, Steps, spec
from bench.sampling import filled_store, touch_pages
from bench.transitions import PRIORITIES, Floats32
from storage.episode_table import EpisodeRecord
from storage.replay import ReplayView
from storage.replay.batch import Batch
from storage.store import Store
from storage.writer import Writer

__all__ = ["FIELDS", "OwnBuffer", "own_buffer", "set_priorities"]

FIELDS = ("observation", "action", "reward", "next_observation", "terminated", "truncated")
"""What the peers' buffers keep of a step; a store keeps more, which is not gathered here."""
_BLOCK = 2**13


class OwnBuffer:
    """A view and the writer of its store."""

    def __init__(self, view: ReplayView, writer: Writer) -> None:
        self.view = view
        self._writer = writer
        self._steps = Steps.random(dtype=np.float32)
        self._t = 0
        writer.begin(0, self._steps.observations[0], seed=1)

    def draw(self, size: int) -> Batch:
        return self.view.sample(size)

    def update(self, drawn: Batch, errors: Floats32) -> None:
        self.view.feed_back(drawn, priority_error=errors)

    def append(self) -> None:
        """One step with all columns; the last of an episode commits it and takes it in."""
        record = self._step(self._t)
        self._t += 1
        if record is not None:
            self.view.admit(record, None)
            while self.view.forget():
                pass
            self._t = 0
            self._writer.begin(0, self._steps.observations[0], seed=1)

    def _step(self, t: int) -> EpisodeRecord | None:
        steps = self._steps
        return self._writer.step(
            0,
            action=steps.actions[t],
            reward=steps.rewards[t],
            observation=steps.observations[t + 1],
            terminated=False,
            truncated=t == EPISODE - 1,
            raw_action=steps.raw_actions[t],
            behaviour=steps.behaviours[t],
            behaviour_kind=1,
            policy_update=0,
        )


@contextmanager
def own_buffer(path: Path, count: int, scheme: str) -> Iterator[OwnBuffer]:
    """A full window of `count` steps of a new store, each with a random priority."""
    with filled_store(path, count, spec(np.float32)) as store:
        if scheme != "uniform":
            set_priorities(store, count)
        with (
            store.replay(window=count, scheme=scheme, seed=0, fields=FIELDS) as view,
            store.writer(lanes=1, window=count) as writer,
        ):
            touch_pages(view)
            yield OwnBuffer(view, writer)


def set_priorities(store: Store, window: int, overlay: str = "main") -> None:
    """Feeds a uniformly random error back of every step of a window, into an overlay."""
    draw = np.random.default_rng(0)
    with store.replay(window=window, scheme="per", overlay=overlay, fields=("reward",)) as view:
        batch = view.sample(min(_BLOCK, view.n_steps)).copy()
        for info in store.segments:
            batch.segment[:] = info.id
            for first in range(0, info.rows, len(batch)):
                batch.row[:] = np.minimum(np.arange(first, first + len(batch)), info.rows - 1)
                errors = draw.uniform(*PRIORITIES, len(batch)).astype(np.float32)
                view.feed_back(batch, priority_error=errors)
