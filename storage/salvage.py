"""Recover what a dead writer left: the open episode becomes a committed, truncated one."""

from __future__ import annotations

import logging
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from storage.episode_table import EpisodeRecord
from storage.errors import SegmentLockedError
from storage.lane import Lane
from storage.layout import Ending, RowKind, segment_id
from storage.lock import SegmentLock
from storage.log_header import is_blank
from storage.open_episode import OpenEpisodeNote, read_note
from storage.problems import has_no_rows
from storage.retention import finish_drops, is_dropped
from storage.segment_writer import SegmentWriter
from storage.trust import questionable

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
    lost_episodes: int = 0
    """Committed episodes whose rows did not reach the disk before the machine went down."""


def salvage(store: Store) -> SalvageReport:
    """Commit the open episodes of writers that are gone; segments of live writers are left alone.

    An episode whose last row says that it ended gets that ending; any other is truncated at its
    last whole step, whose next observation was stored before it. Needs a store opened "r+".
    """
    store.require_writable("salvage")
    store.refresh()
    episodes: list[EpisodeRecord] = []
    torn = 0
    _vouch_sealed(store)
    for info in store.segments:
        if info.sealed:
            continue
        try:
            segment = SegmentWriter.open(store.paths, store.schema, info.id)
        except (SegmentLockedError, FileNotFoundError):  # a live one, or taken away meanwhile
            continue
        torn += segment.torn_bytes
        if not segment.vouched:
            _examine(store, segment)
        record = _salvage_segment(store, segment)
        if record is not None:
            episodes.append(record)
    finish_drops(store.paths)
    _clear_staging(store)
    _clear_unborn(store)
    store.refresh()
    return SalvageReport(tuple(episodes), torn, sum(store.lost_episodes.values()))


def _vouch_sealed(store: Store) -> None:
    """Remember of segments sealed before the machine went down that their rows were found."""
    sealed = {info.id: store.log(info.id) for info in store.segments if info.sealed}
    for segment in questionable(store.paths, sealed):
        if segment in store.lost_episodes:
            continue
        with suppress(SegmentLockedError):
            lock = SegmentLock.acquire(store.paths, segment)
            lock.vouch()
            lock.release()


def _examine(store: Store, segment: SegmentWriter) -> None:
    """Settle what the machine took with it of a segment that was open when it went down.

    Nothing vouches for the rows of its open episode, so they become rows that were never written.
    """
    steps = _open_steps(segment)
    if steps:
        segment.arrays["kind"][segment.rows : segment.allocated] = RowKind.NEVER_WRITTEN
        _logger.warning(
            "%s: %d steps of an episode that was open when the machine went down are not kept, for "
            "nothing tells whether they are whole (segment %06d)",
            store.path,
            steps,
            segment.id,
        )
    if segment.id not in store.lost_episodes:
        segment.vouch()


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
    elif segment.arrays["truncated"][last] and not note.closing:
        ending = Ending.TRUNCATED
    else:
        ending = Ending.SALVAGED
    return lane.commit(ending, start + steps)


def _clear_staging(store: Store) -> None:
    """Remove half-made segments whose maker is gone; nothing in them was ever committed."""
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


def _clear_unborn(store: Store) -> None:
    """Remove segments whose maker was killed before it wrote their log: they have no row."""
    for folder in store.paths.steps.iterdir():
        segment = segment_id(folder.name)
        if segment is None or not folder.is_dir() or _has_log(store, segment):
            continue
        if is_dropped(store.paths, segment) or not has_no_rows(folder, store.schema.columns):
            continue
        try:
            lock = SegmentLock.acquire(store.paths, segment)
        except SegmentLockedError:
            continue
        try:
            if not _has_log(store, segment):
                shutil.rmtree(folder, ignore_errors=True)
                store.paths.open_episode(segment).unlink(missing_ok=True)
                store.paths.log(segment).unlink(missing_ok=True)
        finally:
            lock.release()


def _has_log(store: Store, segment: int) -> bool:
    log = store.paths.log(segment)
    return log.exists() and not is_blank(log)
