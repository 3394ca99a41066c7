"""Overlays: one run's mutable caches over the steps of a store."""

from __future__ import annotations

import itertools
import logging
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from storage.atomic import disk_full_as_error, write_atomic
from storage.containment import require_inside
from storage.description import read_metadata
from storage.errors import ConfigError, CorruptStoreError, ReadOnlyStoreError, WriterStateError
from storage.layout import segment_name
from storage.overlay_checksums import drop_checksums, read_checksum, write_checksums
from storage.overlay_lock import OverlayLock
from storage.overlay_segment import OVERLAY_COLUMNS, OverlaySegment
from storage.segment import header_of
from storage.segment_files import build_folder, publish_arrays
from storage.zarr_metadata import encode, group_document

if TYPE_CHECKING:
    from storage.store import Store

__all__ = ["OVERLAY_COLUMNS", "Overlay", "OverlaySegment", "is_overlay_name"]

_logger = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


def is_overlay_name(name: str) -> bool:
    """Whether an overlay can be called so."""
    return _NAME.fullmatch(name) is not None


class Overlay:
    """An overlay by name, which one view writes at a time.

    Opened for reading, rows that it lacks read as zeros, and so do those of a segment whose files
    are missing or damaged. Opened for writing, such a segment is set aside and made anew. Raises
    OverlayInUseError when somebody else writes it.
    """

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
        self._warned = False
        self._lock: OverlayLock | None = None
        require_inside(path.parent.parent, path / "zarr.json")
        self._check_store()
        if mode == "r+":
            self._create()

    def _check_store(self) -> None:
        """Refuse an overlay that was made over another store."""
        try:
            made_for = read_metadata(self.path / "zarr.json")["attributes"]["store_uuid"]
        except (FileNotFoundError, NotADirectoryError):
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptStoreError(
                f"{self.path / 'zarr.json'} cannot be read ({error}); an overlay is a cache: "
                "remove its folder, or name another overlay"
            ) from None
        if made_for != self._store.uuid:
            raise ConfigError(
                f"overlay {self.path} belongs to the store {made_for!r:.100}, not to "
                f"{self._store.uuid} at {self._store.path}; name another overlay"
            )

    def _create(self) -> None:
        with disk_full_as_error(self.path, 0):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = OverlayLock(self.path.with_name(f"{self.name}.lock"))
        try:
            require_inside(self.path.parent.parent, self._staging)
            with disk_full_as_error(self.path, 0):
                self.path.mkdir(exist_ok=True)
                self._staging.mkdir(exist_ok=True)
            if not (self.path / "zarr.json").exists():
                attributes = {"store_uuid": self._store.uuid, "overlay": self.name}
                document = encode(group_document(attributes))
                write_atomic(self.path / "zarr.json", document, self._staging, sync=True)
        except BaseException:
            self._lock.release()
            raise

    @property
    def _staging(self) -> Path:
        """Beside the Zarr hierarchy, so that foreign readers do not see it."""
        return self.path.with_name(f"{self.name}.staging")

    def segment(self, segment: int, rows: int) -> OverlaySegment:
        """The overlay's columns over a segment, with at least ``rows`` rows to touch."""
        opened = self._segments.get(segment)
        if opened is None:
            self._require_held()
            opened = self._opened(segment)
            opened.ensure(rows)
            self._tell(opened)
            if self.mode == "r+":
                self._take(opened)
            self._segments[segment] = opened
        opened.ensure(rows)
        return opened

    def _require_held(self) -> None:
        if self._lock is not None and not self._lock.held:
            raise WriterStateError(
                f"overlay {self.path} was closed, or is of the process that forked this one; open "
                "it again"
            )

    def _opened(self, segment: int) -> OverlaySegment:
        folder = self.path / segment_name(segment)
        capacity = header_of(self._store.log(segment)).capacity
        writable = self.mode == "r+"
        if writable and not os.path.lexists(folder):
            self._build(folder, capacity)
        opened = OverlaySegment(segment, folder, capacity, writable)
        if not writable or opened.fault is None:
            return opened
        self._set_aside(folder, opened.fault)
        self._build(folder, capacity)
        return OverlaySegment(segment, folder, capacity, writable)

    def _build(self, folder: Path, capacity: int) -> None:
        staged = self._staging / folder.name
        shutil.rmtree(staged, ignore_errors=True)  # of a run that was killed while it built it
        try:
            build_folder(staged, OVERLAY_COLUMNS, capacity)
            staged.rename(folder)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise

    def _set_aside(self, folder: Path, fault: str) -> None:
        """Keep a damaged segment's files beside the overlay."""
        damaged = self.path.with_name(f"{self.name}.damaged")
        require_inside(damaged.parent.parent, damaged)
        with disk_full_as_error(damaged, 0):
            damaged.mkdir(exist_ok=True)
            names = (damaged / f"{folder.name}.{serial}" for serial in itertools.count())
            target = next(name for name in names if not os.path.lexists(name))
            folder.rename(target)
        _logger.warning(
            "%s, so what overlay %s held of its segment counts as never set; it was moved to %s",
            *(fault, self.name, target),
        )

    def _tell(self, opened: OverlaySegment) -> None:
        """Warn of what reads as never set: of the first such segment, where many can be."""
        if opened.fault is None and not len(opened.unset):
            return
        what = opened.fault
        if what is None:
            named = ", ".join(map(str, opened.unset[:5])) + (", …" * (len(opened.unset) > 5))
            what = (
                f"{len(opened.unset):,} rows of segment {segment_name(opened.id)} (row {named}) "
                "hold what no view stores (NaN, infinity, or below 0)"
            )
        if self.mode == "r+" or not self._warned:
            _logger.warning(
                "overlay %s: %s; it reads as never set. Overlays are caches: remove the folder to "
                "begin anew, or resume from a checkpoint, which holds its window's rows",
                *(self.path, what),
            )
        self._warned = True

    def _take(self, opened: OverlaySegment) -> None:
        """Compare what was recorded, then forget it, because these rows change from now on."""
        folder = self.path / segment_name(opened.id)
        recorded = {c.name: read_checksum(folder / c.name) for c in OVERLAY_COLUMNS}
        rows = [each.rows for each in recorded.values() if each is not None]
        if rows and max(rows) <= opened.capacity:
            opened.ensure(max(rows))  # those that a cut file lacks are zero now, and do not fit
        failing = [
            name
            for name, each in recorded.items()
            if each is not None and not each.fits(opened.array(name))
        ]
        drop_checksums(folder, OVERLAY_COLUMNS)
        if failing and not len(opened.unset):
            opened.reset(slice(None))
            _logger.warning(
                "overlay %s: %s of segment %s fail their checksum; its rows count as never set. "
                "Resuming from a checkpoint restores those of its window",
                *(self.path, ", ".join(failing), segment_name(opened.id)),
            )

    def publish(self, segment: int, rows: int) -> None:
        """Show ``rows`` rows of a segment to foreign readers."""
        if self.mode == "r":
            raise ReadOnlyStoreError(f"overlay {self.path} was opened for reading; use mode='r+'")
        opened = self.segment(segment, rows)
        capacity = header_of(self._store.log(segment)).capacity
        folder = self.path / segment_name(segment)
        publish_arrays(folder, OVERLAY_COLUMNS, rows, capacity, self._staging)
        opened.ensure(rows)

    def release(self, segment: int) -> None:
        """Let go of a segment's maps, once it left the window, and record their checksums."""
        opened = self._segments.pop(segment, None)
        if opened is None or self._lock is None or not self._lock.held or not opened.rows:
            return
        arrays = {column.name: opened.array(column.name) for column in OVERLAY_COLUMNS}
        with suppress(OSError, KeyError):  # no room, or the segment was dropped
            write_checksums(self.path / segment_name(segment), arrays, self._staging)
            log = self._store.log(segment)
            if log.sealed:
                opened.trim(log.rows)

    def close(self) -> None:
        """Let go of all maps, and of the lock; may be called twice."""
        try:
            for segment in list(self._segments):
                self.release(segment)
        finally:
            self._segments.clear()
            if self._lock is not None and self._lock.held:
                self._lock.release()
