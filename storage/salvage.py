"""Recover what a dead writer left: the open episode becomes a committed, truncated one."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from storage.episode_table import EpisodeRecord
from storage.errors import SegmentLockedError
from storage.lane import Lane
from storage.layout import Ending, RowKind, segment_id
from storage.open_episode import OpenEpisodeNote, read_note
from storage.segment_writer import SegmentWriter

if TYPE_CHECKING:
    from storage.store import Store

__all__ = ["SalvageReport", "salvage"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SalvageReport:
    """What a salvage found."""

    episodes: tuple[EpisodeRecord, ...]
    torn_bytes: int
    """Bytes of unfinished log records that were cut off."""


def salvage(store: Store) -> SalvageReport:
    """Commit the open episodes of writers that are gone; segments of live writers are left alone.

    An episode whose last row says that it ended gets that ending; any other is truncated at its
    last whole step, whose next observation was stored before it. Needs a store opened "r+".
    """
    store.require_writable("salvage")
    store.refresh()
    episodes: list[EpisodeRecord] = []
    torn = 0
    for info in store.segments:
        if info.sealed:
            continue
        try:
            segment = SegmentWriter.open(store.paths, store.schema, info.id)
        except SegmentLockedError:
            continue
        torn += segment.torn_bytes
        record = _salvage_segment(store, segment)
        if record is not None:
            episodes.append(record)
    _clear_staging(store)
    store.refresh()
    return SalvageReport(tuple(episodes), torn)


def _salvage_segment(store: Store, segment: SegmentWriter) -> EpisodeRecord | None:
    record = None
    try:
        steps = _open_steps(segment)
        if steps:
            record = _commit_open(store, segment, steps)
            _logger.warning(
                "%s: salvaged %d steps of an episode whose writer did not close it (segment %06d)",
                store.path,
                steps,
                segment.id,
            )
        if steps or segment.torn_bytes:
            segment.close()
    finally:
        segment.release()
    return record


def _open_steps(segment: SegmentWriter) -> int:
    """Whole steps after the committed rows."""
    kinds = segment.arrays["kind"][segment.rows : segment.allocated]
    others = np.flatnonzero(kinds != RowKind.STEP)
    steps = int(others[0]) if len(others) else len(kinds)
    return max(0, min(steps, segment.allocated - segment.rows - 1))


def _commit_open(store: Store, segment: SegmentWriter, steps: int) -> EpisodeRecord:
    start = segment.rows
    note = read_note(store.paths.open_episode(segment.id))
    if note is None or note.start != start:
        note = OpenEpisodeNote(start, None, -1, 0)
    lane = Lane(segment.lane, store.schema)
    lane.bind(segment)
    lane.resume(note, steps)
    last = start + steps - 1
    if segment.arrays["terminated"][last]:
        ending = Ending.TERMINATED
    elif segment.arrays["truncated"][last]:
        ending = Ending.TRUNCATED
    else:
        ending = Ending.SALVAGED
    return lane.commit(ending, start + steps)


def _clear_staging(store: Store) -> None:
    """Remove half-made segments whose maker is gone; nothing in them was ever committed."""
    from storage.lock import SegmentLock

    for folder in store.paths.staging.iterdir():
        segment = segment_id(folder.name)
        if segment is None or not folder.is_dir():
            continue
        try:
            lock = SegmentLock.acquire(store.paths, segment)
        except SegmentLockedError:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
