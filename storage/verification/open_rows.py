"""What lies behind the committed rows of a segment that nobody writes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.column_file import ColumnFile
from storage.layout import RowKind
from storage.lost_records import found_note, lacks_records, written_end
from storage.schema import Column
from storage.verification.blocks import row_blocks
from storage.verification.notes import note_fault
from storage.verification.raw_log import RawLog
from storage.verification.store_facts import StoreFacts

__all__ = ["OpenRows", "look_behind"]


@dataclass(frozen=True, slots=True)
class OpenRows:
    """The rows behind those that the log counts, and the note about them."""

    steps: int
    """Of the open episode, or of the first one whose record is lost."""
    note_fault: str
    """What is wrong with the note; nothing where it is whole, or nobody needs it."""
    lost: str = ""
    """What tells that records are lost; nothing where none is."""
    lost_episodes: int = 0
    """Whole episodes without a record, as far as their rows are there."""
    end: int = 0
    """The row after the last one that was written."""


def look_behind(facts: StoreFacts, segment: int, folder: Path, log: RawLog) -> OpenRows:
    """What a writer left that is gone."""
    kinds = _kinds_behind(folder, facts.schema.column("kind"), log)
    others = np.flatnonzero(kinds != RowKind.STEP)
    steps = int(others[0]) if len(others) else len(kinds)
    path = facts.paths.open_episode(segment)
    fault = note_fault(path)
    if not fault and steps and not log.sealed and not path.exists():
        fault = "it is missing"
    note = found_note(facts.paths, segment)
    if log.sealed or not lacks_records(log.rows, note, kinds):
        return OpenRows(steps, fault)
    end = written_end(log.rows, kinds)
    closed = int(np.count_nonzero(kinds == RowKind.CLOSING))
    where = f"it ends at row {log.rows:,}"
    if note is not None:
        where += f", and the note beside it names row {note.start:,} as an episode's first"
    else:
        where += f", and episodes that ended are stored up to row {end:,}"
    return OpenRows(steps, fault, where, closed, end)


def _kinds_behind(folder: Path, column: Column, log: RawLog) -> np.ndarray[Any, Any]:
    """The kinds of the rows behind those that the log counts, as far as they can be read."""
    file = ColumnFile(folder / column.name, column, log.header.capacity)
    parts: list[np.ndarray[Any, Any]] = []
    with suppress(OSError):  # which the column's own examination tells
        parts.extend(
            block.rows[max(0, log.rows - block.first) :].copy()  # the next one takes its place
            for block in row_blocks(file.path, column, file.capacity, file.capacity)
        )
    return np.concatenate(parts) if parts else np.zeros(0, np.uint8)
