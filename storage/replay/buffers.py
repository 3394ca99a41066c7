"""What a view uses again for every batch of one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import EmptyViewError, SamplingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.kernel import Integers
    from storage.replay.batch import Array, Batch, FieldPlan

__all__ = ["BatchBuffers", "Buffers", "checked_count", "checked_out", "checked_size"]

MOST_SIZES = 8
"""Batch sizes whose buffers are kept."""


def checked_count(name: str, given: Any) -> int:
    """A number of steps, at least one; SamplingError for anything else."""
    whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
    if whole and 1 <= given < 2**62:
        return int(given)
    raise SamplingError(f"{name}={given!r}: give a whole number of steps, at least 1")


def checked_size(size: Any, n_steps: int, window: int) -> None:
    """SamplingError for a batch that a window can never serve, EmptyViewError if not yet."""
    if checked_count("batch_size", size) <= n_steps:
        return
    if size > window:
        raise SamplingError(
            f"a batch of {size} steps cannot be drawn from a window of {window}; enlarge the "
            "window or take smaller batches"
        )
    raise EmptyViewError(
        f"{n_steps} of {size} steps; collect more before sampling (an episode's steps enter when "
        "it has ended and was admitted: see advance)"
    )


def checked_out(out: Array | None, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """An array to fill: the given one, if it fits, or a new one."""
    if out is None:
        return np.empty(shape, dtype)
    if out.dtype != dtype or out.shape != shape:
        fits = False
    else:
        fits = bool(out.flags.c_contiguous and out.flags.writeable)
    if not fits:
        raise SamplingError(
            f"out must be a writable, C-contiguous {dtype} array of shape {shape}, not {out.dtype} "
            f"{out.shape}"
        )
    return out


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
