"""What a store lacks, found by looking at names and sizes alone: cheap enough for every opening."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from storage.column_file import ColumnFile
from storage.errors import CorruptStoreError
from storage.layout import segment_id
from storage.segment import SegmentInfo

if TYPE_CHECKING:
    from storage.store import Store

__all__ = ["damaged_segments", "problems", "require_whole"]


def problems(store: Store) -> list[str]:
    """Segments without a log, logs without a segment, and columns that are missing or short."""
    found = [text for info in store.segments for text in _damage(store, info)]
    return found + _without_log(store)


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
    if not folder.is_dir():
        text = (
            f"{folder} is missing, but {store.paths.log(info.id)} counts {info.episodes:,} "
            "episodes in it: restore the folder from a copy, or move the log out of the store"
        )
        return [text]
    found = []
    for column in store.schema.columns:
        try:
            ColumnFile(folder / column.name, column, info.capacity).require(info.rows)
        except CorruptStoreError as error:
            found.append(str(error))
    return found


def _without_log(store: Store) -> list[str]:
    return [
        f"{folder} has no log {store.paths.log(segment)}, so nobody knows which of its rows count "
        "and none is shown: the log was lost, or a writer was killed before the first episode. "
        "Restore the log from a copy, or move the folder out of the store"
        for segment, folder in _folders(store.paths.steps)
        if not store.paths.log(segment).exists()
    ]


def _folders(steps: Path) -> list[tuple[int, Path]]:
    named = [(segment_id(folder.name), folder) for folder in sorted(steps.iterdir())]
    return [(segment, folder) for segment, folder in named if segment is not None]
