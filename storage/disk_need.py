"""How much disk a collection will take, before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.layout import INNER_ROWS, align_up, data_offset
from storage.segment_writer import next_allocation
from storage.writer_settings import capacity_for, default_row_budget

if TYPE_CHECKING:
    from storage.schema import Schema

__all__ = ["disk_need"]


def disk_need(
    schema: Schema, steps: int, *, lanes: int = 1, window: int = 2**18, longest: int | None = None
) -> int:
    """Bytes that a writer's column files take at most while it writes ``steps`` steps.

    Counts what is allocated ahead of the rows, the index of every file, and closing rows as if
    every episode had ``longest`` steps (one a lane when nobody knows).
    """
    budget = default_row_budget(window, lanes)
    capacity = capacity_for(None, budget, longest)
    least = -(-steps // lanes)
    rows = least + max(1, -(-least // longest) if longest else 1)
    full, last = divmod(rows, budget)
    allocated = 0
    while allocated < min(last + 1, capacity):
        allocated = next_allocation(allocated, allocated + 1, schema.row_bytes, capacity)
    files = (full + 1) * len(schema.columns) * data_offset(capacity)
    sealed = full * align_up(budget, INNER_ROWS)
    return lanes * (files + (sealed + allocated) * schema.row_bytes)
