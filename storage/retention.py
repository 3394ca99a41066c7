"""What becomes of segments that left the window: kept, or dropped once nothing names them.

A segment is dropped in an order that a kill may cut anywhere: its episode table is linked into
``dropped/``, its log moves to ``staging/ID.dropping/`` (from then on the segment does not exist for
readers), everything else follows, and that folder is removed. Whoever next opens the store for
writing finishes what was begun. The lock file stays, so the id is never used again, and live
readers keep what they have mapped. The episodes of dropped segments stay known by their tables.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from storage.commit_log import CommitLog
from storage.containment import read_regular, require_inside
from storage.episode_table import write_episode_table
from storage.errors import CorruptStoreError, SegmentLockedError, WriterStateError
from storage.layout import Ending, StorePaths, segment_id, segment_name
from storage.lock import SegmentLock
from storage.log_record import RECORD
from storage.segment import header_of

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.store import Store

__all__ = [
    "Retention",
    "drop",
    "droppable",
    "dropped_episodes",
    "dropped_records",
    "dropped_table",
    "finish_drops",
    "is_dropped",
    "orphan_dropped",
]

Retention = Literal["keep", "drop"]
"""What becomes of a segment that left the window."""
_DROPPING = ".dropping"


def droppable(
    store: Store, window_segments: Collection[int], pinned: Collection[int], run: str
) -> list[int]:
    """Segments of ``run`` that nothing needs, by id.

    They are sealed, outside ``window_segments`` (those of which the window holds an episode or has
    yet to take one in), and not ``pinned`` (those that a kept checkpoint names). The store is seen
    as of its last ``refresh``.
    """
    return [
        info.id
        for info in store.segments
        if info.sealed
        and info.run == run
        and info.id not in window_segments
        and info.id not in pinned
    ]


def drop(store: Store, segments: Iterable[int]) -> None:
    """Remove sealed segments for good, with what every overlay holds of them.

    Raises WriterStateError for a segment that is not sealed, SegmentLockedError for one that
    somebody writes or drops just now, DiskFullError where there is no room for its table.
    """
    store.require_writable("dropping segments")
    try:
        for segment in segments:
            _drop_one(store.paths, segment)
    finally:
        store.refresh()


def finish_drops(paths: StorePaths) -> None:
    """Finish, or undo where nothing was moved yet, the drops that a kill cut short."""
    for folder in paths.staging.glob(f"*{_DROPPING}"):
        segment = segment_id(folder.stem)
        if segment is None:
            continue
        try:
            lock = SegmentLock.acquire(paths, segment)
        except SegmentLockedError:
            continue
        try:
            if paths.log(segment).exists():
                dropped_table(paths, segment).unlink(missing_ok=True)
                shutil.rmtree(folder, ignore_errors=True)
            else:
                _move_rest(paths, segment, folder)
        finally:
            lock.release()


def dropped_table(paths: StorePaths, segment: int) -> Path:
    """The Arrow table of a dropped segment's episodes."""
    return paths.root / "dropped" / f"{segment_name(segment)}.arrow"


def is_dropped(paths: StorePaths, segment: int) -> bool:
    """Whether a segment was dropped, or is being dropped."""
    return dropped_table(paths, segment).exists() and not paths.log(segment).exists()


def dropped_episodes(paths: StorePaths) -> list[pa.Table]:
    """The episode tables of dropped segments, one each, by id; columns as ``Store.episodes``."""
    return [_read_table(paths, dropped_table(paths, segment)) for segment in _dropped(paths)]


def dropped_records(paths: StorePaths) -> list[tuple[str, int, np.ndarray[Any, Any]]]:
    """The run, the lane and the episodes (dtype RECORD) of every dropped segment, by id.

    Their ``sequence`` is 0, which tables do not hold.
    """
    return [
        (_run_of(table), _lane_of(table), _records_of(table)) for table in dropped_episodes(paths)
    ]


def orphan_dropped(paths: StorePaths, run: str, next_segment: int) -> None:
    """Set aside what is known of a run's dropped segments from an id on, whose steps never were.

    For a rewind to a position that is older than these segments; their ids are free again.
    """
    for segment in _dropped(paths):
        if (
            segment < next_segment
            or _run_of(_read_table(paths, dropped_table(paths, segment))) != run
        ):
            continue
        lock = SegmentLock.acquire(paths, segment)
        try:
            folder = _free_folder(paths.orphans, segment_name(segment))
            dropped_table(paths, segment).rename(folder / "episodes.arrow")
        finally:
            lock.discard()


def _dropped(paths: StorePaths) -> list[int]:
    found = (segment_id(file.stem) for file in (paths.root / "dropped").glob("*.arrow"))
    return sorted(each for each in found if each is not None and not paths.log(each).exists())


def _read_table(paths: StorePaths, file: Path) -> pa.Table:
    """An Arrow IPC file of the store; CorruptStoreError where it is none."""
    import pyarrow as pa

    require_inside(paths.root, file)
    try:
        return pa.ipc.open_file(pa.BufferReader(read_regular(file))).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise CorruptStoreError(
            f"{file} cannot be read as a table of episodes ({error}). It tells of steps that were "
            "dropped, and nothing else needs it: restore it from a copy, or move it out"
        ) from error


def _run_of(table: pa.Table) -> str:
    return str(table["run"][0].as_py()) if len(table) else ""


def _lane_of(table: pa.Table) -> int:
    return int(table["lane"][0].as_py()) if len(table) else 0


def _records_of(table: pa.Table) -> np.ndarray[Any, Any]:
    records = np.zeros(len(table), RECORD)
    for name in set(records.dtype.names or ()).intersection(table.column_names) - {"ending"}:
        column = table[name]
        if name.endswith("_time"):
            column = column.cast("int64")
        records[name] = column.fill_null(0).to_numpy()
    records["seed_known"] = table["seed"].is_valid().to_numpy()
    codes = {ending.name.lower(): ending for ending in Ending}
    records["ending"] = [codes[name] for name in table["ending"].to_pylist()]
    return records


def _free_folder(parent: Path, name: str) -> Path:
    serial = 0
    while True:
        folder = parent / f"{name}.{serial:03d}"
        try:
            folder.mkdir()
        except FileExistsError:
            serial += 1
        else:
            return folder


def _drop_one(paths: StorePaths, segment: int) -> None:
    lock = SegmentLock.acquire(paths, segment)
    try:
        log = CommitLog(paths.log(segment))
        if not log.sealed:
            raise WriterStateError(
                f"segment {segment_name(segment)} of {paths.root} is not sealed, so more episodes "
                "may follow; only sealed segments are dropped"
            )
        folder = paths.staging / f"{segment_name(segment)}{_DROPPING}"
        folder.mkdir(exist_ok=True)
        _keep_table(paths, log)
        log.path.rename(folder / "log")
        for each in (paths.logs, paths.staging, folder):
            _sync_folder(each)  # a power cut must not undo this and keep what follows
        _move_rest(paths, segment, folder)
    finally:
        lock.release()


def _keep_table(paths: StorePaths, log: CommitLog) -> None:
    """Put the segment's table into ``dropped/``, by a link, which needs no room, where it can."""
    header = header_of(log)
    kept = dropped_table(paths, header.segment)
    kept.parent.mkdir(exist_ok=True)
    kept.unlink(missing_ok=True)
    if _is_whole(paths, paths.episode_table(header.segment), len(log.records)):
        try:
            os.link(paths.episode_table(header.segment), kept)
        except OSError:  # a file system without links
            pass
        else:
            return
    write_episode_table(kept, header, log.records, paths.staging)


def _is_whole(paths: StorePaths, table: Path, episodes: int) -> bool:
    """Whether a table holds all episodes of its log; it may lag behind, or be damaged."""
    try:
        return len(_read_table(paths, table)) == episodes
    except CorruptStoreError:
        return False


def _move_rest(paths: StorePaths, segment: int, folder: Path) -> None:
    """Everything of a segment but its log, then away with it."""
    name = segment_name(segment)
    overlays = {
        f"overlay.{each.stem}": each / name
        for each in paths.overlays.glob("*.zarr")
        if not each.is_symlink()
    }
    parts = {
        "steps": paths.segment(segment),
        "open": paths.open_episode(segment),
        "episodes.arrow": paths.episode_table(segment),
    }
    for part, source in (parts | overlays).items():
        if source.exists():
            source.rename(folder / part)
    shutil.rmtree(folder, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
