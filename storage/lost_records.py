"""Episodes that were committed, and whose records the log has no more.

A log that was cut between two records looks whole. What tells is what a writer does only after a
record is there: it begins the next episode, names its first row in the note, and stores its steps.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.column_file import ColumnFile
from storage.commit_log import CommitLog
from storage.errors import CorruptStoreError, SegmentLockedError
from storage.layout import RowKind, StorePaths, segment_name
from storage.lock import SegmentLock
from storage.open_episode import OpenEpisodeNote, read_note
from storage.segment import header_of

if TYPE_CHECKING:
    from storage.schema import Schema
    from storage.store import Store

__all__ = ["found_note", "lacks_records", "leaves_alone", "written_end"]

_logger = logging.getLogger(__name__)


def lacks_records(rows: int, note: OpenEpisodeNote | None, kinds: np.ndarray[Any, Any]) -> bool:
    """Whether more episodes were committed than the log, which counts ``rows`` rows, says.

    ``kinds`` are those of the rows behind, uint8. They are asked where there is no whole note: a
    writer that dies leaves at most one closing row behind, with nothing after it.
    """
    if note is not None:
        return note.start > rows
    others = np.flatnonzero(kinds != RowKind.STEP)
    if not len(others) or kinds[others[0]] != RowKind.CLOSING:
        return False
    return bool(kinds[others[0] + 1 : others[0] + 2].any())


def written_end(rows: int, kinds: np.ndarray[Any, Any]) -> int:
    """The row after the last one behind ``rows`` that was written; ``rows`` where none was."""
    written = np.flatnonzero(kinds)
    return rows + int(written[-1]) + 1 if len(written) else rows


def found_note(paths: StorePaths, segment: int) -> OpenEpisodeNote | None:
    """The note about a segment's open episode; None where there is no whole one, or no file."""
    try:
        return read_note(paths.open_episode(segment))
    except CorruptStoreError:
        return None


def leaves_alone(store: Store, segment: int) -> bool:
    """Whether a writer keeps its hands off a segment, for its log lacks records: warns then.

    Not after the machine went down, nor in a copy: there the records were lost as rows may be.
    """
    if not _lacks(store.paths, store.schema, segment):
        return False
    try:
        lock = SegmentLock.acquire(store.paths, segment)
    except SegmentLockedError:  # its writer is further on than what was just read
        return True
    try:
        if not lock.vouched or not _lacks(store.paths, store.schema, segment):
            return False
    finally:
        lock.release()
    _logger.warning(
        "%s lacks records of episodes that were committed: rows behind those that it counts belong "
        "to them. Nothing is salvaged there, and nothing was changed: restore the log from a copy, "
        "or let `sharpwave repair` set these rows aside (segment %s)",
        store.paths.log(segment),
        segment_name(segment),
    )
    return True


def _lacks(paths: StorePaths, schema: Schema, segment: int) -> bool:
    log = CommitLog(paths.log(segment))
    if log.sealed:
        return False
    note = found_note(paths, segment)
    kinds = np.zeros(0, np.uint8)
    if note is None:
        header = header_of(log)
        file = ColumnFile(paths.segment(segment) / "kind", schema.column("kind"), header.capacity)
        if not file.path.is_file() or file.path.is_symlink():
            return False
        allocated = file.allocated()
        kinds = file.map(allocated, writable=False)[log.rows :] if allocated else kinds
    return lacks_records(log.rows, note, kinds)
