"""What a store lacks, found by looking at names and sizes alone: cheap enough for every opening."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from storage.column_file import ColumnFile, shard_file_name
from storage.containment import require_inside
from storage.errors import CorruptStoreError
from storage.layout import data_offset, log_inodes, segment_id
from storage.log_header import is_blank
from storage.retention import is_dropped
from storage.segment import SegmentInfo

if TYPE_CHECKING:
    from storage.schema import Column
    from storage.store import Store

__all__ = ["damaged_segments", "has_no_rows", "problems", "require_whole"]


def problems(store: Store) -> list[str]:
    """Segments without a log, logs without a segment, and columns that are missing or short."""
    found = [text for info in store.segments for text in _damage(store, info)]
    return found + _without_log(store) + _blank(store)


def damaged_segments(store: Store) -> set[int]:
    """Segments whose columns cannot all be read."""
    return {info.id for info in store.segments if _damage(store, info)}


def require_whole(store: Store) -> None:
    """Raise CorruptStoreError naming the first thing that the logs count and the files lack."""
    for info in store.segments:
        for text in _damage(store, info):
            raise CorruptStoreError(text)


def _damage(store: Store, info: SegmentInfo) -> list[str]:
    folder = store.paths.segment(info.id)
    if not store.paths.log(info.id).exists():
        return []  # dropped, or set aside, since the store was opened
    if not folder.is_dir():
        text = (
            f"{folder} is missing, but {store.paths.log(info.id)} counts {info.episodes:,} "
            "episodes in it: restore the folder from a copy, or move the log out of the store"
        )
        return [text]
    if _is_whole(os.fspath(folder), store.schema.columns, info):
        return []
    found = []
    for column in store.schema.columns:
        try:
            file = ColumnFile(folder / column.name, column, info.capacity)
            require_inside(store.path, file.path)
            file.require(info.rows)
        except CorruptStoreError as error:
            found.append(str(error))
    return found if store.paths.log(info.id).exists() else []  # dropped while it was looked at


def _is_whole(folder: str, columns: tuple[Column, ...], info: SegmentInfo) -> bool:
    """Whether all columns are files that are long enough, found without a path object each."""
    offset = data_offset(info.capacity)
    folders = _folders_in(folder)
    for column in columns:
        if column.name not in folders:
            return False
        try:
            status = os.lstat(f"{folder}/{column.name}/{shard_file_name(column)}")
        except OSError:
            return False
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_size < offset + info.rows * column.row_bytes
        ):
            return False
    return True


def _folders_in(folder: str) -> set[str]:
    """Names of the folders in a segment's folder, links left out; none where it is a link."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return set()
    try:
        with os.scandir(descriptor) as entries:
            return {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
    finally:
        os.close(descriptor)


def _without_log(store: Store) -> list[str]:
    return [
        f"{folder} has no log {store.paths.log(segment)}, so nobody knows which of its rows count "
        "and none is shown: the log was lost, or a writer was killed before the first episode. "
        "Restore the log from a copy, or move the folder out of the store"
        for segment, folder in _folders(store.paths.steps)
        if not store.paths.log(segment).exists()
        and not is_dropped(store.paths, segment)
        and not has_no_rows(folder, store.schema.columns)
    ]


def _blank(store: Store) -> list[str]:
    shown = {info.id for info in store.segments}
    return [
        f"{store.paths.log(segment)} is empty, so nothing is known of its segment: the machine "
        "went down before it was on the disk. `sharpwave repair` sets the segment aside"
        for segment in log_inodes(store.paths).keys() - shown
        if is_blank(store.paths.log(segment))
    ]


def has_no_rows(folder: Path, columns: tuple[Column, ...]) -> bool:
    """Whether all column files are equally long, as of a segment of which no row was stored."""
    try:
        sizes = {os.lstat(folder / c.name / shard_file_name(c)).st_size for c in columns}
    except OSError:
        return False
    return len(sizes) == 1


def _folders(steps: Path) -> list[tuple[int, Path]]:
    named = [(segment_id(folder.name), folder) for folder in sorted(steps.iterdir())]
    return [(segment, folder) for segment, folder in named if segment is not None]
