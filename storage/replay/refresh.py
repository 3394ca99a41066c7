"""Recomputing V and ρ of the whole window in this process, a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from storage.errors import FeedbackError
from storage.kernel import Floats32, Integers
from storage.replay.batch import Batch, FieldPlan, plan_row
from storage.replay.feedback import SMALLEST_RATIO, checked
from storage.replay.gather import copy_rows, scatter_rows
from storage.replay.stacks import gather_stacks
from storage.replay.tables import RATIO, VALUE

if TYPE_CHECKING:
    from storage.replay.segment_table import SegmentTable
    from storage.replay.window import Window
    from storage.schema import Schema

__all__ = ["CHUNK_ROWS", "Evaluate", "RefreshChunk", "refresh_window"]

CHUNK_ROWS = 8192
"""At most; less of wide rows."""
_CHUNK_BYTES = 2**24
_FIELDS = ("observation", "action", "raw_action", "behaviour", "behaviour_kind")


@dataclass(frozen=True, slots=True)
class RefreshChunk:
    """Consecutive rows of the window, for a network to evaluate; valid during the call only."""

    rows: Batch
    """observation, action, raw_action, behaviour and behaviour_kind of each row, where the store
    has the column."""
    closing: npt.NDArray[np.bool_]
    """Rows that are closing rows: V is wanted for them, their importance ratio is ignored."""

    def __len__(self) -> int:
        return int(self.closing.size)


Evaluate = Callable[[RefreshChunk], tuple[Floats32, Floats32]]
"""Gives (V, ρ), float32 [rows] each, of a chunk under the current network."""


def refresh_window(schema: Schema, window: Window, evaluate: Evaluate) -> None:
    """Store V of every step and closing row and ρ of every step; targets are the caller's."""
    segments = window.segments
    available = {column.name for column in schema.columns}
    nested = ("observation", "action")
    fields = [field for field in _FIELDS if field in available or field in nested]
    plan = FieldPlan(schema, fields)
    buffers: dict[int, tuple[Batch, Integers, Integers]] = {}
    for slots, rows, closing in _chunks(window, _chunk_rows(schema)):
        if rows.size not in buffers:
            batch, gathering = plan.buffers(rows.size, segments.column)
            stacks = plan.stack_plan(batch, segments.column)
            buffers[rows.size] = batch, gathering, stacks
        batch, gathering, stacks = buffers[rows.size]
        copy_rows(segments.table, slots, rows, gathering)
        gather_stacks(window.episodes, segments.table, slots, rows, stacks)
        _store(segments, slots, rows, closing, evaluate(RefreshChunk(batch, closing)))


def _chunk_rows(schema: Schema) -> int:
    """Rows of a chunk, which as the network sees them take some 16 MiB at most."""
    shown = schema.row_bytes * (schema.frame_stack or 1)
    return max(1, min(CHUNK_ROWS, _CHUNK_BYTES // shown))


def _chunks(
    window: Window, size: int
) -> Iterator[tuple[Integers, Integers, npt.NDArray[np.bool_]]]:
    slots, rows = window.rows()
    closing = np.zeros(rows.size, np.bool_)
    closing[np.cumsum(window.identities()[:, 3] + 1) - 1] = True
    for first in range(0, rows.size, size):
        part = slice(first, first + size)
        yield slots[part], rows[part], closing[part]


def _store(
    segments: SegmentTable,
    slots: Integers,
    rows: Integers,
    closing: npt.NDArray[np.bool_],
    evaluated: Any,
) -> None:
    try:
        value, ratio = evaluated
    except (TypeError, ValueError):
        raise FeedbackError("a refresh must give a pair of arrays (V, ρ)") from None
    value = checked("value", value, rows.size)
    ratio = checked("importance_ratio", np.where(closing, np.float32(1), ratio), rows.size, 0.0)
    ratio = np.maximum(ratio, SMALLEST_RATIO)
    plan = np.array([plan_row(VALUE, value), plan_row(RATIO, ratio)], np.int64)
    scatter_rows(segments.table, slots, rows, plan)
