"""The Zarr metadata of a segment or overlay against what its log says."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from storage.description import LARGEST_METADATA
from storage.schema import Column
from storage.verification.regular_files import read_file
from storage.zarr_metadata import array_json, group_json

__all__ = ["Documents", "judge", "read_documents", "shown_rows"]


class Documents(NamedTuple):
    """The metadata files of one segment as they were; words where a file cannot be read."""

    group: bytes | str
    arrays: dict[str, bytes | str]


_LARGEST_ARRAY = 2**20
"""Bytes that no column's document has more of."""


def _read(path: Path, limit: int = LARGEST_METADATA) -> bytes | str:
    try:
        return read_file(path, limit)
    except (FileNotFoundError, NotADirectoryError):
        return "it is missing"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def read_documents(folder: Path, columns: tuple[Column, ...]) -> Documents:
    """Read them before the log, which a live writer appends to first."""
    arrays = {
        column.name: _read(folder / column.name / "zarr.json", _LARGEST_ARRAY) for column in columns
    }
    return Documents(_read(folder / "zarr.json"), arrays)


def judge(
    documents: Documents,
    columns: tuple[Column, ...],
    capacity: int,
    rows: int,
    ends: Collection[int] | None = None,
) -> Iterator[tuple[str, str, str]]:
    """(kind of fault, file within the segment, what) of every document that is not right.

    A document may show up to ``rows`` rows, and only one of the counts ``ends`` if there are any.
    """
    group = documents.group
    what = _fault(group, rows, ends, lambda rows: group_json(columns, rows, capacity), _group_rows)
    if what:
        yield "group-metadata", "zarr.json", what
    for column in columns:
        text = documents.arrays[column.name]

        def made(rows: int, column: Column = column) -> bytes:
            return array_json(column, rows, capacity)

        what = _fault(text, rows, ends, made, _array_rows)
        if what:
            yield "array-metadata", f"{column.name}/zarr.json", what


def _fault(
    text: bytes | str,
    limit: int,
    ends: Collection[int] | None,
    made: Callable[[int], bytes],
    rows_in: Callable[[Any], Any],
) -> str:
    """What is wrong with a document; nothing where it is byte for byte what a writer makes."""
    if isinstance(text, str):
        return text
    try:
        rows = rows_in(json.loads(text))
    except (ValueError, LookupError, TypeError, StopIteration, RecursionError):
        rows = None
    if type(rows) is not int or rows < 0 or made(rows) != text:
        return "it is not what a writer writes"
    if rows > limit:
        return f"it shows {rows:,} rows, the log counts {limit:,}"
    if ends is not None and rows not in ends:
        return f"it shows {rows:,} rows, where no episode ends"
    return ""


def shown_rows(documents: Documents) -> int:
    """The rows that the group shows to foreign readers; 0 where it cannot be read."""
    try:
        rows = _group_rows(json.loads(documents.group))
    except (ValueError, LookupError, TypeError, StopIteration, RecursionError):
        return 0
    return rows if type(rows) is int else 0


def _array_rows(document: Any) -> Any:
    return document["shape"][0]


def _group_rows(document: Any) -> Any:
    members = document["consolidated_metadata"]["metadata"]
    return next(iter(members.values()))["shape"][0]
