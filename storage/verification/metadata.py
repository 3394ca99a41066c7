"""The Zarr metadata of a segment or overlay against what its log says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from storage.schema import Column
from storage.zarr_metadata import array_json, group_json

__all__ = ["Documents", "judge", "read_documents"]


class Documents(NamedTuple):
    """The metadata files of one segment as they were; None where a file is not there."""

    group: bytes | None
    arrays: dict[str, bytes | None]


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def read_documents(folder: Path, columns: tuple[Column, ...]) -> Documents:
    """Read them before the log, which a live writer appends to first."""
    arrays = {column.name: _read(folder / column.name / "zarr.json") for column in columns}
    return Documents(_read(folder / "zarr.json"), arrays)


def judge(
    documents: Documents, columns: tuple[Column, ...], capacity: int, ends: set[int] | None
) -> Iterator[tuple[str, str, str]]:
    """(kind of fault, file within the segment, what) of every document that is not right.

    ``ends`` are the row counts at which episodes end, 0 included; None where any count will do.
    """
    group = documents.group
    what = _fault(group, ends, lambda rows: group_json(columns, rows, capacity), _group_rows)
    if what:
        yield "group-metadata", "zarr.json", what
    for column in columns:
        text = documents.arrays[column.name]

        def made(rows: int, column: Column = column) -> bytes:
            return array_json(column, rows, capacity)

        what = _fault(text, ends, made, _array_rows)
        if what:
            yield "array-metadata", f"{column.name}/zarr.json", what


def _fault(text: bytes | None, ends: set[int] | None, made: Any, rows_in: Any) -> str:
    """What is wrong with a document; nothing where it is byte for byte what a writer makes."""
    if text is None:
        return "it is missing"
    try:
        rows = rows_in(json.loads(text))
    except (ValueError, LookupError, TypeError, StopIteration, RecursionError):
        rows = None
    if type(rows) is not int or rows < 0 or made(rows) != text:
        return "it is not what a writer writes"
    if ends is not None and rows not in ends:
        ahead = rows > max(ends)
        return f"it shows {rows:,} rows, " + (
            f"the log counts {max(ends):,}" if ahead else "which is no episode's end"
        )
    return ""


def _array_rows(document: Any) -> Any:
    return document["shape"][0]


def _group_rows(document: Any) -> Any:
    members = document["consolidated_metadata"]["metadata"]
    return next(iter(members.values()))["shape"][0]
