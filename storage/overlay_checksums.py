"""Checksums of what an overlay holds of a segment while nobody writes it.

Each column's lies beside its shard, ``overlays/NAME.zarr/000000/value/checksum.json``, so that it
goes wherever the rows go. A view removes a segment's before it stores into its rows, and records
them anew when the segment has left the window or the view is closed. A run that was killed leaves
none, never wrong ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.atomic import write_atomic
from storage.checksum import crc32c
from storage.containment import open_regular, require_inside
from storage.errors import CorruptStoreError
from storage.layout import segment_name
from storage.schema import Column

__all__ = ["RowsChecksum", "drop_checksums", "forget_checksums", "read_checksum", "write_checksums"]

_NAME = "checksum.json"
_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class RowsChecksum:
    """CRC32C of a column's first ``rows`` rows."""

    rows: int
    crc32c: int

    def fits(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether the rows are what they were; False where there are fewer."""
        return len(array) >= self.rows and crc32c(array[: self.rows]) == self.crc32c


def read_checksum(folder: Path) -> RowsChecksum | None:
    """What was recorded in a column's folder; None where there is nothing, or nothing readable."""
    try:
        with open(folder / _NAME, "rb", opener=open_regular) as file:
            read = json.loads(file.read(_LARGEST))
        rows, checksum = read["rows"], read["crc32c"]
    except (OSError, CorruptStoreError, ValueError, LookupError, TypeError, RecursionError):
        return None
    if type(rows) is not int or type(checksum) is not int or rows < 0:
        return None
    return RowsChecksum(rows, checksum)


def write_checksums(
    folder: Path, arrays: Mapping[str, np.ndarray[Any, Any]], staging: Path
) -> None:
    """Remember what the rows of a segment's columns are now. Raises OSError where it cannot."""
    for name, array in arrays.items():
        text = json.dumps({"rows": len(array), "crc32c": crc32c(array)})
        write_atomic(folder / name / _NAME, text.encode(), staging)


def drop_checksums(folder: Path, columns: tuple[Column, ...]) -> None:
    """Forget those of a segment's folder in an overlay, before its rows change."""
    for column in columns:
        (folder / column.name / _NAME).unlink(missing_ok=True)


def forget_checksums(overlays: Path, segment: int, columns: tuple[Column, ...]) -> None:
    """The same for every overlay in a folder; CorruptStoreError for one behind a link."""
    if not overlays.is_dir():
        return
    for name in os.listdir(overlays):
        folder = overlays / name / segment_name(segment)
        if name.endswith(".zarr") and folder.is_dir():
            for column in columns:
                require_inside(overlays.parent, folder / column.name)
            drop_checksums(folder, columns)
