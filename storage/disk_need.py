"""How much disk a collection or a run will take, before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.layout import INNER_ROWS, align_up, data_offset
from storage.log_record import record_dtype
from storage.overlay import OVERLAY_COLUMNS
from storage.segment_files import next_allocation
from storage.writer_settings import capacity_for, default_row_budget

if TYPE_CHECKING:
    from storage.schema import Column, Schema

__all__ = ["DiskNeed", "disk_need", "overlay_need", "record_need"]

_BLOCK = 4096
"""What a file system gives at least, and what a folder takes."""
_TABLE_BYTES = 192
"""Of an episode in its Arrow table, the run's name included."""
_GROUP_BYTES = 2_000
"""Of a column in the metadata of its segment's group."""
_FOLDERS = 10
"""Of a store, without its segments'."""


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
    schema: Schema,
    steps: int,
    *,
    lanes: int = 1,
    window: int = 2**18,
    longest: int | None = None,
    shortest: int | None = None,
) -> DiskNeed:
    """What a writer's column files take while it writes ``steps`` steps.

    Counts what is allocated ahead of the rows, the index of every file, and closing rows as if
    every episode had ``shortest`` steps, or ``longest`` (one a lane when nobody knows).
    """
    return _need(schema.columns, steps, lanes, window, longest, shortest, trimmed=True)


def record_need(
    schema: Schema,
    steps: int,
    *,
    lanes: int = 1,
    window: int = 2**18,
    longest: int | None = None,
    shortest: int | None = None,
) -> int:
    """Bytes of all else at most: logs, episode tables, metadata, folders, and ends of blocks.

    Arguments as of `disk_need`. While a table is replaced, the old one is there, too.
    """
    columns = len(schema.columns)
    segments = disk_need(
        schema, steps, lanes=lanes, window=window, longest=longest, shortest=shortest
    ).segments
    episodes = lanes * _episodes(-(-steps // lanes), shortest or longest)
    group = align_up(columns * _GROUP_BYTES, _BLOCK)
    # Of a column its folder, its metadata and the end of its file; of a segment its folder, lock
    # and note, and the ends of log and table.
    each = group + (3 * columns + 6) * _BLOCK
    record = record_dtype(columns).itemsize + _TABLE_BYTES
    staged = group + (align_up(-(-episodes // segments) * _TABLE_BYTES, _BLOCK) + _BLOCK)
    root = 2 * group + _FOLDERS * _BLOCK
    return segments * each + align_up(episodes * record, _BLOCK) + lanes * staged + root


def overlay_need(
    steps: int, *, lanes: int = 1, window: int = 2**18, longest: int | None = None
) -> DiskNeed:
    """What an overlay over the same steps takes."""
    return _need(OVERLAY_COLUMNS, steps, lanes, window, longest, None, trimmed=False)


def _need(
    columns: Sequence[Column],
    steps: int,
    lanes: int,
    window: int,
    longest: int | None,
    shortest: int | None,
    *,
    trimmed: bool,
) -> DiskNeed:
    """``trimmed``: whether sealing gives back what was allocated ahead of the rows."""
    row_bytes = sum(column.row_bytes for column in columns)
    budget = default_row_budget(window, lanes)
    capacity = capacity_for(None, budget, longest)
    least = -(-steps // lanes)
    rows = least + _episodes(least, shortest or longest)
    full, last = divmod(rows, budget)
    allocated = _allocated(last + 1, row_bytes, capacity)
    sealed = align_up(budget, INNER_ROWS)
    if not trimmed:
        sealed = _allocated(budget + 1, row_bytes, capacity)
    indexes = len(columns) * data_offset(capacity)
    total = lanes * ((full + 1) * indexes + (full * sealed + allocated) * row_bytes)
    first = lanes * (indexes + next_allocation(0, 1, row_bytes, capacity) * row_bytes)
    return DiskNeed(total, first, lanes * (full + 1))


def _episodes(steps: int, length: int | None) -> int:
    """Of a lane, each of so many steps; one when nobody knows."""
    return max(1, -(-steps // length)) if length else 1


def _allocated(rows: int, row_bytes: int, capacity: int) -> int:
    """Rows that are allocated when so many have been needed one by one."""
    allocated = 0
    while allocated < min(rows, capacity):
        allocated = next_allocation(allocated, allocated + 1, row_bytes, capacity)
    return allocated
