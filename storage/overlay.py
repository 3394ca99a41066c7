"""Overlays: one run's mutable caches over the steps of a store."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from storage.atomic import disk_full_as_error, write_atomic
from storage.column_file import ColumnFile
from storage.errors import ConfigError, CorruptStoreError, DiskFullError, ReadOnlyStoreError
from storage.layout import INNER_ROWS, align_up, segment_name
from storage.schema import Column
from storage.segment import header_of
from storage.segment_writer import build_folder, next_allocation, publish_arrays
from storage.zarr_metadata import encode, group_document

if TYPE_CHECKING:
    from storage.store import Store

__all__ = ["OVERLAY_COLUMNS", "Overlay", "OverlaySegment", "is_overlay_name"]

OVERLAY_COLUMNS = (
    Column("priority", np.dtype("<f4")),
    Column("importance_ratio", np.dtype("<f4")),
    Column("far", np.dtype("u1")),
    Column("divergence", np.dtype("<f4")),
    Column("value", np.dtype("<f4")),
    Column("value_target", np.dtype("<f4")),
    Column("draw_count", np.dtype("<u4")),
    Column("last_drawn", np.dtype("<i8")),
)
_ROW_BYTES = sum(column.row_bytes for column in OVERLAY_COLUMNS)
_BY_NAME = {column.name: column for column in OVERLAY_COLUMNS}


_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


def is_overlay_name(name: str) -> bool:
    """Whether an overlay can be called so."""
    return _NAME.fullmatch(name) is not None


class OverlaySegment:
    """Maps of the overlay's columns over one segment; addresses stay valid while this lives."""

    def __init__(self, segment: int, folder: Path, capacity: int, writable: bool) -> None:
        self.id = segment
        self.rows = 0
        """Rows that may be touched."""
        self._writable = writable
        self._capacity = capacity
        self._files = [ColumnFile(folder / c.name, c, capacity) for c in OVERLAY_COLUMNS]
        self._there = folder.exists()
        self._stored = 0
        self._maps: dict[str, np.ndarray[Any, Any]] = {}

    def ensure(self, rows: int) -> None:
        """Make ``rows`` rows touchable, zero where new; raises DiskFullError, undone."""
        if rows <= self.rows:
            return
        self._stored = min(file.allocated() for file in self._files) if self._there else 0
        if self._stored < rows and self._writable:
            self._allocate(self._stored, rows)
        elif self._stored < rows:
            self._maps.clear()
        self.rows = rows

    def _allocate(self, allocated: int, rows: int) -> None:
        least = min(align_up(rows, INNER_ROWS), self._capacity)
        target = next_allocation(allocated, rows, _ROW_BYTES, self._capacity)
        for size in dict.fromkeys((target, least)):
            try:
                for file in self._files:
                    file.allocate(size)
                return
            except DiskFullError:
                for file in self._files:
                    file.shrink(allocated)
                if size == least:
                    raise

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """A column's touchable rows, shape (rows,)."""
        return self._map(name)[: self.rows]

    def address(self, name: str) -> int:
        """Where row 0 of a column lies in memory, for kernels."""
        return int(self._map(name).ctypes.data)

    def row_bytes(self, name: str) -> int:
        """Bytes from one row to the next."""
        return _BY_NAME[name].row_bytes

    def _map(self, name: str) -> np.ndarray[Any, Any]:
        if name not in _BY_NAME:
            raise KeyError(f"no overlay column {name!r}; there are {', '.join(_BY_NAME)}")
        if name not in self._maps:
            file = self._files[list(_BY_NAME).index(name)]
            if self._writable or self._stored >= self.rows > 0:
                self._maps[name] = file.map(self._capacity, writable=self._writable)
            else:
                self._maps[name] = self._padded(file)
        return self._maps[name]

    def _padded(self, file: ColumnFile) -> np.ndarray[Any, Any]:
        """A read-only copy: what is stored, then zeros."""
        rows = np.zeros(self._capacity, file.column.dtype)
        if self._stored:
            rows[: self._stored] = file.map(self._stored, writable=False)
        rows.flags.writeable = False
        return rows


class Overlay:
    """An overlay by name. Opened for reading, rows that it lacks read as zeros."""

    def __init__(self, store: Store, name: str, path: Path, mode: Literal["r", "r+"]) -> None:
        if not is_overlay_name(name):
            raise ConfigError(
                f"overlay name {name!r}: give 1 to 200 letters, digits, dots, dashes, underscores"
            )
        self.name = name
        self.path = path
        self.mode = mode
        self._store = store
        self._segments: dict[int, OverlaySegment] = {}
        if (path / "zarr.json").exists():
            self._check_store()
        if mode == "r+":
            self._create()

    def _check_store(self) -> None:
        """Refuse an overlay that was made over another store."""
        try:
            made_for = json.loads((self.path / "zarr.json").read_bytes())["attributes"][
                "store_uuid"
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptStoreError(
                f"{self.path / 'zarr.json'} cannot be read ({error!r}); an overlay is a cache: "
                "remove its folder, or name another overlay"
            ) from None
        if made_for != self._store.uuid:
            raise ConfigError(
                f"overlay {self.path} belongs to the store {made_for}, not to {self._store.uuid} "
                f"at {self._store.path}; name another overlay"
            )

    def _create(self) -> None:
        with disk_full_as_error(self.path, 0):
            self.path.mkdir(parents=True, exist_ok=True)
            self._staging.mkdir(exist_ok=True)
        if not (self.path / "zarr.json").exists():
            attributes = {"store_uuid": self._store.uuid, "overlay": self.name}
            write_atomic(self.path / "zarr.json", encode(group_document(attributes)), self._staging)

    @property
    def _staging(self) -> Path:
        """Beside the Zarr hierarchy, so that foreign readers do not see it."""
        return self.path.with_name(f"{self.name}.staging")

    def segment(self, segment: int, rows: int) -> OverlaySegment:
        """The overlay's columns over a segment, with at least ``rows`` rows to touch."""
        opened = self._segments.get(segment)
        if opened is None:
            folder = self.path / segment_name(segment)
            capacity = self._capacity(segment)
            if self.mode == "r+" and not folder.exists():
                self._build(folder, capacity)
            opened = OverlaySegment(segment, folder, capacity, self.mode == "r+")
            self._segments[segment] = opened
        opened.ensure(rows)
        return opened

    def _capacity(self, segment: int) -> int:
        return header_of(self._store.log(segment)).capacity

    def _build(self, folder: Path, capacity: int) -> None:
        staged = self._staging / folder.name
        try:
            build_folder(staged, OVERLAY_COLUMNS, capacity)
            staged.rename(folder)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise

    def publish(self, segment: int, rows: int) -> None:
        """Show ``rows`` rows of a segment to foreign readers."""
        if self.mode == "r":
            raise ReadOnlyStoreError(f"overlay {self.path} was opened for reading; use mode='r+'")
        opened = self.segment(segment, rows)
        folder = self.path / segment_name(segment)
        publish_arrays(folder, OVERLAY_COLUMNS, rows, self._capacity(segment), self._staging)
        opened.ensure(rows)

    def release(self, segment: int) -> None:
        """Let go of a segment's maps, once it left the window."""
        self._segments.pop(segment, None)

    def close(self) -> None:
        """Let go of all maps; may be called twice."""
        self._segments.clear()
