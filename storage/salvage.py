"""Recover what a dead writer left: the open episode becomes a committed, truncated one."""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from storage.commit_log import CommitLog
from storage.episode_table import EpisodeRecord, write_episode_table
from storage.errors import SegmentLockedError
from storage.lane import Lane
from storage.layout import Ending, RowKind, segment_id
from storage.lock import SegmentLock
from storage.log_header import is_blank
from storage.lost_records import found_note, lacks_records, leaves_alone, written_end
from storage.open_episode import OpenEpisodeNote, create_note
from storage.orphans import save_rows
from storage.problems import has_no_rows
from storage.retention import finish_drops, is_dropped
from storage.segment import SegmentInfo, header_of
from storage.segment_files import publish_arrays
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
        if info.sealed or leaves_alone(store, info.id):
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
    _derive_tables(store)
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
    So do those of episodes whose records were lost, after a copy of them was set aside. The same
    goes for a copy of a store, of which nobody knows whether it was written meanwhile.
    """
    kinds = segment.arrays["kind"][segment.rows : segment.allocated]
    steps = _open_steps(segment)
    note = found_note(store.paths, segment.id)
    if lacks_records(segment.rows, note, kinds):
        _set_rows_aside(store, segment, written_end(segment.rows, kinds))
    elif steps:
        kinds[:] = RowKind.NEVER_WRITTEN
        _logger.warning(
            "%s: %d steps of an open episode are not kept, for nothing tells whether they are "
            "whole in a copy, or after the machine went down (segment %06d). In the original of a "
            "copy, the next writer keeps them",
            store.path,
            steps,
            segment.id,
        )
    if segment.id not in store.lost_episodes:
        segment.vouch()


def _set_rows_aside(store: Store, segment: SegmentWriter, end: int) -> None:
    """Move the rows of episodes whose records are gone to orphans/, and have the note forget."""
    if end > segment.rows:
        folder = save_rows(store, segment, b"", segment.rows, end)
        segment.arrays["kind"][segment.rows : segment.allocated] = RowKind.NEVER_WRITTEN
        _logger.warning(
            "%s: %d rows of episodes whose records are not in the log, as in a copy, or after the "
            "machine went down, are set aside in %s (segment %06d)",
            store.path,
            end - segment.rows,
            folder.relative_to(store.path),
            segment.id,
        )
    create_note(store.paths.open_episode(segment.id))


def _derive_tables(store: Store) -> None:
    """Publish again whatever has episodes and no table: it was lost, or its writer was killed."""
    there = set(os.listdir(store.paths.episodes))
    for info in store.segments:
        if not info.episodes or store.paths.episode_table(info.id).name in there:
            continue
        with suppress(SegmentLockedError, FileNotFoundError):
            _publish(store, info)


def _publish(store: Store, info: SegmentInfo) -> None:
    paths = store.paths
    trusted = not paths.lock(info.id).exists()  # a lock file that vouches for nothing says less
    lock = None if trusted and info.sealed else SegmentLock.acquire(paths, info.id)
    try:
        log = CommitLog(paths.log(info.id))
        columns, folder = store.schema.columns, paths.segment(info.id)
        table = paths.episode_table(info.id)
        write_episode_table(table, header_of(log), log.records, paths.staging)
        publish_arrays(folder, columns, log.rows, info.capacity, paths.staging)
    finally:
        if lock is not None:
            lock.release()


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
    note = found_note(store.paths, segment.id)
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
