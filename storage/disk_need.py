"""How much disk a collection or a run will take, before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.layout import INNER_ROWS, align_up, data_offset
from storage.overlay import OVERLAY_COLUMNS
from storage.segment_files import next_allocation
from storage.writer_settings import capacity_for, default_row_budget

if TYPE_CHECKING:
    from storage.schema import Column, Schema

__all__ = ["DiskNeed", "disk_need", "overlay_need"]


@dataclass(frozen=True, slots=True)
class DiskNeed:
    """Bytes of column files."""

    total: int
    """At most, over the whole time."""
    first: int
    """Before the first step is stored."""
    segments: int
    """Segments, of all lanes together."""


def disk_need(
    schema: Schema, steps: int, *, lanes: int = 1, window: int = 2**18, longest: int | None = None
) -> DiskNeed:
    """What a writer's column files take while it writes ``steps`` steps.

    Counts what is allocated ahead of the rows, the index of every file, and closing rows as if
    every episode had ``longest`` steps (one a lane when nobody knows).
    """
    return _need(schema.columns, steps, lanes, window, longest, trimmed=True)


def overlay_need(
    steps: int, *, lanes: int = 1, window: int = 2**18, longest: int | None = None
) -> DiskNeed:
    """What an overlay over the same steps takes."""
    return _need(OVERLAY_COLUMNS, steps, lanes, window, longest, trimmed=False)


def _need(
    columns: Sequence[Column],
    steps: int,
    lanes: int,
    window: int,
    longest: int | None,
    *,
    trimmed: bool,
) -> DiskNeed:
    """``trimmed``: whether sealing gives back what was allocated ahead of the rows."""
    row_bytes = sum(column.row_bytes for column in columns)
    budget = default_row_budget(window, lanes)
    capacity = capacity_for(None, budget, longest)
    least = -(-steps // lanes)
    rows = least + max(1, -(-least // longest) if longest else 1)
    full, last = divmod(rows, budget)
    allocated = _allocated(last + 1, row_bytes, capacity)
    sealed = align_up(budget, INNER_ROWS)
    if not trimmed:
        sealed = _allocated(budget + 1, row_bytes, capacity)
    indexes = len(columns) * data_offset(capacity)
    total = lanes * ((full + 1) * indexes + (full * sealed + allocated) * row_bytes)
    first = lanes * (indexes + next_allocation(0, 1, row_bytes, capacity) * row_bytes)
    return DiskNeed(total, first, lanes * (full + 1))


def _allocated(rows: int, row_bytes: int, capacity: int) -> int:
    """Rows that are allocated when so many have been needed one by one."""
    allocated = 0
    while allocated < min(rows, capacity):
        allocated = next_allocation(allocated, allocated + 1, row_bytes, capacity)
    return allocated
