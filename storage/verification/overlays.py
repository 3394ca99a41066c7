"""Overlays: caches, so that whatever is wrong with them is a warning."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from storage.checksum import crc32c, extend_crc32c
from storage.column_file import ColumnFile
from storage.file_lock import is_locked
from storage.layout import segment_id
from storage.overlay import OVERLAY_COLUMNS
from storage.overlay_checksums import RowsChecksum, read_checksum
from storage.schema import Column
from storage.verification.blocks import read_head, row_blocks
from storage.verification.findings import Finding, finding, hidden_finding
from storage.verification.metadata import judge, read_documents
from storage.verification.regular_files import CannotJudgeError, names_in, read_file
from storage.verification.shard import shard_head
from storage.verification.store_facts import StoreFacts
from storage.zarr_metadata import encode, group_document

__all__ = ["check_overlay_segment", "check_overlays", "overlay_document", "overlays_of"]

_NEVER_NEGATIVE = frozenset({"priority", "importance_ratio"})


def overlays_of(facts: StoreFacts) -> list[Path]:
    """The folders of the store's overlays."""
    folder = facts.paths.overlays
    return [folder / name for name in names_in(folder) if name.endswith(".zarr")]


def overlay_document(facts: StoreFacts, name: str) -> bytes:
    """An overlay's root metadata: nothing but what it is called and which store it is over."""
    return encode(group_document({"store_uuid": facts.uuid, "overlay": name}))


def check_overlays(facts: StoreFacts) -> Iterator[Finding]:
    """The root metadata of every overlay, and folders of segments that the store has not."""
    try:
        overlays = overlays_of(facts)
    except CannotJudgeError:  # which the list of hidden folders tells
        return
    for overlay in overlays:
        try:
            yield from list(_check_overlay(facts, overlay))
        except CannotJudgeError as error:
            yield hidden_finding(error, facts.paths.root)


def _check_overlay(facts: StoreFacts, overlay: Path) -> Iterator[Finding]:
    """The same of one overlay."""
    file = overlay / "zarr.json"
    if overlay.is_symlink() or not overlay.is_dir():
        yield finding("stray", _relative(overlay, facts), "no folder, which an overlay is")
        return
    try:
        there: bytes | str = read_file(file)
    except FileNotFoundError:
        there = "it is missing"
    except OSError as error:
        there = f"it cannot be read: {error.strerror}"
    if there != overlay_document(facts, overlay.stem):
        yield finding("overlay-metadata", _relative(file, facts), _what(there))
    for name in names_in(overlay):
        segment = segment_id(name)
        if name == "zarr.json":
            continue
        if segment is None or not os.path.lexists(facts.paths.log(segment)):
            yield finding("stray", _relative(overlay / name, facts), "of no segment of the store")


def _what(there: bytes | str) -> str:
    if isinstance(there, str):
        return there
    try:
        uuid = json.loads(there)["attributes"]["store_uuid"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "it is not what a writer writes"
    return f"it is not that of this store (it names store {uuid})"


def _relative(path: Path, facts: StoreFacts) -> str:
    return path.relative_to(facts.paths.root).as_posix()


def check_overlay_segment(
    facts: StoreFacts, segment: int, capacity: int, rows: int | None
) -> tuple[list[Finding], int]:
    """What every overlay holds of a segment; also gives the bytes that were read.

    ``rows`` are those of the log; None where a live writer may be further on by now.
    """
    found: list[Finding] = []
    taken = 0
    for overlay in overlays_of(facts):
        folder = overlay / facts.paths.segment(segment).name
        if overlay.is_symlink() or folder.is_symlink() or not folder.is_dir():
            continue
        limit = capacity if rows is None else rows
        documents = read_documents(folder, OVERLAY_COLUMNS)
        for _, file, what in judge(documents, OVERLAY_COLUMNS, capacity, limit):
            path = _relative(folder / file, facts)
            found.append(finding("overlay-segment", path, what, segment=segment))
        for column in OVERLAY_COLUMNS:
            file_ = ColumnFile(folder / column.name, column, capacity)
            what, size = _column_fault(file_)
            taken += size
            if what:
                path = _relative(file_.path, facts)
                found.append(finding("overlay-segment", path, what, segment=segment))
        found += _unchecked(facts, overlay, folder, segment)
    return found, taken


def _unchecked(facts: StoreFacts, overlay: Path, folder: Path, segment: int) -> Iterator[Finding]:
    """A note on columns that nothing could be compared with; none while a view writes them."""
    names = [each.name for each in OVERLAY_COLUMNS]
    lacking = [n for n in names if not os.path.lexists(folder / n / "checksum.json")]
    if not lacking or _is_written(overlay):
        return
    shown = f"{len(lacking)} of {len(names)} columns" if len(lacking) > 1 else lacking[0]
    what = f"no checksum.json, so that its rows were not compared ({shown})"
    yield finding("overlay-unchecked", _relative(folder, facts), what, segment=segment)


def _is_written(overlay: Path) -> bool:
    """Whether a view has the overlay open for writing, or nobody can tell."""
    try:
        return is_locked(overlay.with_name(f"{overlay.stem}.lock"))
    except OSError:
        return True


def _column_fault(file: ColumnFile) -> tuple[str, int]:
    """What is wrong with a column of an overlay, and the bytes read."""
    with suppress(OSError):  # read_checksum takes what may not be read for what is not there
        read_file(file.path.parent / "checksum.json")
    recorded = read_checksum(file.path.parent)
    taken = 0
    try:
        head = read_head(file.path, file.capacity)
        taken += len(head)
        if head != shard_head(file.column, file.capacity):
            return "the shard's index, or the zeros behind it, is damaged", taken
        sums = RowsSum(recorded.rows if recorded is not None else 0)
        for block in row_blocks(file.path, file.column, file.capacity, file.capacity):
            taken += block.rows.nbytes
            bad = block.error or _impossible(file.column, block.rows)
            if bad:
                return f"{bad} from row {block.first:,} on", taken
            sums.take(block.rows)
    except OSError as error:
        return f"it cannot be read: {error.strerror}", taken
    return _changed(file, recorded, sums), taken


class RowsSum:
    """CRC32C of a column's first rows, taken block by block."""

    def __init__(self, rows: int) -> None:
        self.wanted = rows
        self.seen = 0
        self.crc32c = 0

    def take(self, rows: np.ndarray[Any, Any]) -> None:
        """The next rows."""
        part = rows[: self.wanted - self.seen]
        if len(part):
            data: Any = part.view(np.uint8)
            self.crc32c = extend_crc32c(self.crc32c, data) if self.seen else crc32c(data)
            self.seen += len(part)


def _changed(file: ColumnFile, recorded: RowsChecksum | None, sums: RowsSum) -> str:
    """Whether rows are not what they were when the last view let go of them.

    A view forgets the checksum before it changes a row: one that has changed meanwhile says
    nothing.
    """
    folder = file.path.parent
    if recorded is None:
        there = (folder / "checksum.json").exists() and read_checksum(folder) is None
        return "its checksum.json is not what a view writes" if there else ""
    fits = (sums.seen, sums.crc32c) == (recorded.rows, recorded.crc32c)
    if fits or read_checksum(folder) != recorded:
        return ""
    return "its rows are not those that its last view left"


def _impossible(column: Column, rows: np.ndarray[Any, Any]) -> str:
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        return "values that are not finite"
    if column.name in _NEVER_NEGATIVE and (rows < 0).any():
        return "values below 0"
    if column.name == "far" and (rows > 1).any():
        return "far flags that are neither 0 nor 1"
    return ""
