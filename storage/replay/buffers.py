"""What a view uses again for every batch of one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.kernel import Integers
    from storage.replay.batch import Batch, FieldPlan

__all__ = ["BatchBuffers", "Buffers"]

MOST_SIZES = 8
"""Batch sizes whose buffers are kept."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """A batch and how it is filled."""

    batch: Batch
    identity: Integers
    """int64 [4, B]: segment id, row, segment slot and ring position of each step."""
    plan: Integers
    """What is gathered; see `gather`."""
    stacks: Integers
    """What is gathered in stacks; see `stacks`."""


class BatchBuffers:
    """Buffers by batch size, made when a size is first asked for.

    `place(column)` gives a column's place in the segment table.
    """

    def __init__(self, plan: FieldPlan, place: Callable[[str], int]) -> None:
        self._plan = plan
        self._place = place
        self._made: dict[int, Buffers] = {}

    def __contains__(self, size: int) -> bool:
        """Whether a size was asked for before."""
        return size in self._made

    def of(self, size: int) -> Buffers:
        """The buffers of a size."""
        known = self._made.get(size)
        return self._make(size) if known is None else known

    def _make(self, size: int) -> Buffers:
        batch, plan = self._plan.buffers(size, self._place)
        identity = np.empty((4, size), np.int64)
        batch.segment, batch.row, batch.position = identity[0], identity[1], identity[3]
        stacks = self._plan.stack_plan(batch, self._place)
        while len(self._made) >= MOST_SIZES:
            del self._made[next(iter(self._made))]
        self._made[size] = Buffers(batch, identity, plan, stacks)
        return self._made[size]
