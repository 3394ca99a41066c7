"""The column files and Zarr metadata of one segment, of a store or of an overlay."""

from __future__ import annotations

from pathlib import Path

from storage.atomic import disk_full_as_error, write_atomic
from storage.column_file import ColumnFile
from storage.layout import INNER_ROWS, align_up
from storage.schema import Column
from storage.zarr_metadata import array_json, group_json

__all__ = ["build_folder", "next_allocation", "publish_arrays"]

_FIRST_STEP = 1024
_LARGEST_STEP = 65_536
_LARGEST_STEP_BYTES = 64 * 2**20


def next_allocation(allocated: int, needed: int, row_bytes: int, capacity: int) -> int:
    """Rows to allocate next: doubling from 1,024 in steps of at most 65,536 rows or 64 MiB."""
    step = min(max(allocated, _FIRST_STEP), _LARGEST_STEP, _LARGEST_STEP_BYTES // row_bytes)
    target = max(needed, allocated + step)
    return min(align_up(target, INNER_ROWS), capacity)


def publish_arrays(
    folder: Path, columns: tuple[Column, ...], rows: int, capacity: int, staging: Path
) -> None:
    """Show ``rows`` rows to foreign readers: the group for all columns at once, then each array."""
    write_atomic(folder / "zarr.json", group_json(columns, rows, capacity), staging)
    for column in columns:
        document = array_json(column, rows, capacity)
        write_atomic(folder / column.name / "zarr.json", document, staging)


def build_folder(folder: Path, columns: tuple[Column, ...], capacity: int) -> None:
    """Make a segment's Zarr group with empty columns; nobody may see ``folder`` yet."""
    with disk_full_as_error(folder, 0):
        folder.mkdir()
        for column in columns:
            place = folder / column.name
            place.mkdir()
            ColumnFile(place, column, capacity).create()
            (place / "zarr.json").write_bytes(array_json(column, 0, capacity))
        (folder / "zarr.json").write_bytes(group_json(columns, 0, capacity))
