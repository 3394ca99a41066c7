"""Samples of a prioritized buffer at work: draw a batch, feed random errors of it back, again."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.peer_buffers import Buffer
from bench.timing import calls_in_a_block
from bench.transitions import PRIORITIES

__all__ = ["Cycle", "cycles"]

_FEED_BACKS = 64


@dataclass(frozen=True, slots=True)
class Cycle:
    """Mean microseconds of one draw and of one update, over a block of them."""

    draw: float
    update: float

    @property
    def both(self) -> float:
        """What a learner waits for replay in one update of its own."""
        return self.draw + self.update


def cycles(buffer: Buffer, size: int) -> Callable[[], Cycle]:
    """Work that gives the times of one block, of some 2 ms; the errors change with each update."""
    draw = np.random.default_rng(0)
    given = draw.uniform(*PRIORITIES, (_FEED_BACKS, size)).astype(np.float32)
    errors = itertools.cycle(list(given))
    clock = time.perf_counter_ns

    def once() -> tuple[int, int]:
        start = clock()
        drawn = buffer.draw(size)
        between = clock()
        buffer.update(drawn, next(errors))
        return between - start, clock() - between

    count = calls_in_a_block(once)

    def block() -> Cycle:
        drawing, updating = zip(*(once() for _ in range(count)), strict=True)
        return Cycle(sum(drawing) / count / 1e3, sum(updating) / count / 1e3)

    return block
