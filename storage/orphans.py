"""Going back to a position: what a run wrote after it moves to ``orphans/``, kept but not read."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from storage.atomic import disk_full_as_error, write_atomic
from storage.column_file import ColumnFile
from storage.commit_log import CommitLog
from storage.errors import CheckpointError
from storage.layout import INNER_ROWS, RowKind, align_up, segment_name
from storage.lock import SegmentLock
from storage.open_episode import create_note
from storage.overlay import OVERLAY_COLUMNS
from storage.overlay_checksums import forget_checksums
from storage.position import LanePosition, OpenPosition, SegmentPosition, StorePosition
from storage.retention import finish_drops, is_dropped, orphan_dropped
from storage.segment import header_of
from storage.segment_writer import SegmentWriter
from storage.syncing import sync_path, sync_tree
from storage.trust import failing_episodes

if TYPE_CHECKING:
    from storage.store import Store

__all__ = ["rewind", "save_rows"]

Rows = Mapping[str, np.ndarray[Any, Any]]
"""Columns by name."""
_NOTE: Final = "orphan.json"
_TAIL: Final = "log.tail"
_BLOCK: Final = 1024
"""Rows that are compared at a time."""


def rewind(store: Store, position: StorePosition, run: str) -> None:
    """Take everything that ``run`` wrote after ``position`` out of the store.

    Whole segments, log records and rows after it move to ``orphans/`` (columns as .npy, the log's
    tail, a JSON note). Rows of episodes that were open at the position stay, so that
    ``store.writer(continue_from=position)`` goes on with them. Doing it again changes nothing.

    Raises SegmentLockedError when a writer of the run lives, CheckpointError when the store lacks
    what the position names.
    """
    store.require_writable("rewind")
    if position.store_uuid != store.uuid:
        raise CheckpointError(
            f"the position belongs to store {position.store_uuid}, {store.path} is {store.uuid}; "
            "give the store that the checkpoint was made with"
        )
    store.refresh()
    finish_drops(store.paths)
    named = [each for each in position.segments if not is_dropped(store.paths, each.id)]
    kept = {each.id: each for each in named}
    missing = [segment for segment in kept if not store.paths.log(segment).exists()]
    if missing:
        raise CheckpointError(
            f"{store.path} has no segment {segment_name(missing[0])}, which the position names; "
            "the store was changed since the checkpoint"
        )
    own = [info.id for info in store.segments if info.run == run]
    for segment in {*own, *kept}:
        SegmentLock.acquire(store.paths, segment).release()
    for each in kept.values():
        _check_log(store, each)
    for segment in own:
        if segment not in kept and segment >= position.next_segment:
            _orphan_segment(store, segment)
    lanes = {lane.segment: lane for lane in position.lanes if lane.segment is not None}
    orphan_dropped(store.paths, run, position.next_segment)
    for each in kept.values():
        log = store.log(each.id)
        if not (log.sealed and log.sequence == each.records):
            _cut_segment(store, each.id, each.records, lanes.get(each.id))
    store.reload()


def _check_log(store: Store, kept: SegmentPosition) -> None:
    """CheckpointError unless the log begins with what it held at the position."""
    log = CommitLog(store.paths.log(kept.id))
    if log.sequence < kept.records:
        raise CheckpointError(
            f"segment {segment_name(kept.id)} of {store.path} has {log.sequence} records, the "
            f"position {kept.records}: the store is older than the checkpoint, or lost data since. "
            "Put back the store that belongs to the checkpoint, or go on from an older checkpoint"
        )
    if log.checksum_at(kept.records) != kept.checksum:
        raise CheckpointError(
            f"the first {kept.records} records of {log.path} are not those that the position "
            "names: the store was changed since the checkpoint. Put back the store that belongs to "
            "it, or go on from an older checkpoint"
        )


def _orphanage(store: Store, segment: int) -> Path:
    """A new folder below orphans/."""
    serial = 0
    while True:
        folder = store.paths.orphans / f"{segment_name(segment)}.{serial:03d}"
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            serial += 1


def _orphan_segment(store: Store, segment: int) -> None:
    """Move all files of a segment away; its id is free again."""
    paths = store.paths
    lock = SegmentLock.acquire(paths, segment)
    folder = _orphanage(store, segment)
    name = segment_name(segment)
    try:
        for overlay in paths.overlays.glob("*.zarr"):
            _move(overlay / name, folder / f"overlay.{overlay.stem}")
        _move(paths.episode_table(segment), folder / "episodes.arrow")
        _move(paths.segment(segment), folder / "steps")
        _move(paths.open_episode(segment), folder / "open")
        _move(paths.log(segment), folder / "log")  # last: while it is there, a rewind goes on
    finally:
        lock.discard()


def _move(source: Path, target: Path) -> None:
    if source.exists():
        source.rename(target)


def _cut_segment(store: Store, segment: int, sequence: int, lane: LanePosition | None) -> None:
    """Cut the log after ``sequence`` records, and the rows after the committed and open ones."""
    opened = lane.open if lane is not None else None
    writer = SegmentWriter.open(store.paths, store.schema, segment)
    try:
        log = CommitLog(store.paths.log(segment))
        if not writer.vouched:
            _check_rows(store, log, sequence)
        tail = log.path.read_bytes()[log.byte_at(sequence) :]
        keep = log.rows_at(sequence)
        if opened is not None:
            keep = opened.start + opened.steps
        writer.take_up()
        written = np.flatnonzero(writer.arrays["kind"][keep : writer.allocated])
        end = min(keep + int(written[-1]) + 2, writer.allocated) if len(written) else keep
        if (tail or len(written)) and not _only_closed(log, sequence, opened):
            save_rows(store, writer, tail, keep, end)
        if tail:
            kept = log.path.read_bytes()[: log.byte_at(sequence)]
            write_atomic(log.path, kept, store.paths.staging, sync=True)
        # What follows is done again after a kill, whatever was done of it before.
        create_note(store.paths.open_episode(segment))  # it may be of an episode that is no more
        _reset_rows(writer, opened, keep, end)
        _reset_overlays(store, segment, keep)
        writer.reopen_log()
        writer.publish()
    finally:
        writer.release()


def _check_rows(store: Store, log: CommitLog, sequence: int) -> None:
    """CheckpointError where rows before the position were lost with the machine."""
    records = log.records
    kept = set(records["ordinal"][records["sequence"] < sequence].tolist())
    lost = sorted(kept.intersection(failing_episodes(store.paths, store.schema, log)))
    if lost:
        raise CheckpointError(
            f"episode {lost[0]} of {log.path}, which the position counts, fails its checksums: its "
            "rows were changed, or did not reach the disk before the machine went down, or a copy "
            f"of it was made. Set it aside by `sharpwave repair {store.path}`, and go on from an "
            "older checkpoint"
        )


def _only_closed(log: CommitLog, sequence: int, opened: OpenPosition | None) -> bool:
    """Whether all that came after is the end of the episode that was open, without a step more."""
    if opened is None or log.sequence != sequence + 1 or log.torn_bytes():
        return False
    last = log.records[-1:]
    begins, steps = last["start"] == opened.start, last["length"] == opened.steps
    return bool((last["sequence"] == sequence).all() and begins.all() and steps.all())


def save_rows(store: Store, writer: SegmentWriter, tail: bytes, first: int, end: int) -> Path:
    """Copy rows [first, end) and the log's tail to a folder below orphans/, which is given.

    It is on the device before the caller changes anything. What the caller changes may not be: a
    kill in between, or a power cut after it, brings back rows that are in their folder already.
    """
    rows = {name: array[first:end] for name, array in writer.arrays.items()}
    held = _holding(store, writer.id, rows, tail, first)
    if held is not None:
        return held
    folder = _orphanage(store, writer.id)
    with disk_full_as_error(folder, len(tail)):
        for name, array in rows.items():
            np.save(folder / f"{name}.npy", array)
        (folder / _TAIL).write_bytes(tail)
        note = {"segment": writer.id, "first_row": first, "end_row": end, "time": time.time_ns()}
        text = json.dumps(note, indent=2).encode()
        sync_tree(folder)
        write_atomic(folder / _NOTE, text, store.paths.staging, sync=True)  # last: all is there
        sync_path(folder)
        sync_path(store.paths.orphans)
    return folder


def _holding(store: Store, segment: int, rows: Rows, tail: bytes, first: int) -> Path | None:
    """The folder that has the log's tail and all that is left of the rows from ``first`` on."""
    for folder in sorted(store.paths.orphans.glob(f"{segment_name(segment)}.*")):
        with suppress(OSError, ValueError, LookupError):  # one that is damaged holds nothing
            start = first - json.loads((folder / _NOTE).read_bytes())["first_row"]
            if tail not in (b"", (folder / _TAIL).read_bytes()) or start < 0:
                continue
            if all(
                _is_left_of(array, np.load(folder / f"{name}.npy", mmap_mode="r")[start:])
                for name, array in rows.items()
            ):
                return folder
    return None


def _is_left_of(rows: np.ndarray[Any, Any], kept: np.ndarray[Any, Any]) -> bool:
    """Whether every byte is that of ``kept`` rows, or zero, as resetting some of it made it."""
    if rows.dtype != kept.dtype or rows.shape[1:] != kept.shape[1:] or len(kept) < len(rows):
        return False
    for at in range(0, len(rows), _BLOCK):
        ours = np.frombuffer(rows[at : at + _BLOCK].tobytes(), np.uint8)
        theirs = np.frombuffer(kept[at : at + _BLOCK].tobytes()[: ours.size], np.uint8)
        if ((ours != theirs) & (ours != 0)).any():
            return False
    return True


def _reset_rows(writer: SegmentWriter, opened: OpenPosition | None, keep: int, end: int) -> None:
    """Make rows [keep, end) rows that were never written.

    Of an open episode, row ``keep`` still holds the current observation, and its last step did not
    end it, whatever a salvage wrote there since.
    """
    kept: set[str] = set()
    if opened is not None:
        kept = {leaf.name for leaf in writer.schema.observation}
        kept |= {column.name for item in writer.schema.info for column in item.columns}
    if opened is not None and opened.steps:
        writer.arrays["terminated"][keep - 1] = False
        writer.arrays["truncated"][keep - 1] = False
    for name, array in writer.arrays.items():
        if name != "kind":
            array[min(keep + (name in kept), end) : end] = 0
    writer.arrays["kind"][keep:end] = RowKind.NEVER_WRITTEN  # last: until then a rewind goes on


def _reset_overlays(store: Store, segment: int, first: int) -> None:
    """Zero the caches of rows that are no more."""
    forget_checksums(store.paths.overlays, segment, OVERLAY_COLUMNS)
    capacity = header_of(store.log(segment)).capacity
    for overlay in store.paths.overlays.glob("*.zarr"):
        folder = overlay / segment_name(segment)
        if folder.exists():
            for column in OVERLAY_COLUMNS:
                _zero(ColumnFile(folder / column.name, column, capacity), first)


def _zero(file: ColumnFile, first: int) -> None:
    end = file.allocated()
    if first < end:
        file.fill_holes()
        array: np.ndarray[Any, Any] = file.map(align_up(end, INNER_ROWS), writable=True)
        array[first:end] = 0
