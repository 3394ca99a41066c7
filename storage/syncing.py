"""Brings a segment's rows, and then the records that speak of them, to the device."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from storage.errors import DeviceError
from storage.layout import StorePaths
from storage.log_appender import LogAppender
from storage.mapping import sync_pages

__all__ = ["Durability", "SyncRule", "Syncing", "sync_path", "sync_store", "sync_tree"]

Durability = Literal["process", "fsync"]
"""What a committed episode survives: the end of its process, or of the machine."""
Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, slots=True)
class SyncRule:
    """When committed episodes are brought to the device: whichever comes first."""

    episodes: int = 1
    """As soon as so many wait; 1 holds every commit until the device has it."""
    seconds: float = 0.0
    """When one ends later than this after the oldest that waits; 0 for no such limit."""


@contextmanager
def device_errors(path: Path) -> Iterator[None]:
    """Turn an I/O error into a DeviceError that names the file."""
    try:
        yield
    except OSError as error:
        raise DeviceError(
            f"the device did not take {path} ({error.strerror}): what was written since the last "
            "sync may be lost when the machine goes down. Nothing more is written into its "
            "segment. Stop, look at the disk (dmesg), and check the store by `sharpwave verify`."
        ) from error


def sync_path(path: Path) -> None:
    """Wait until the device has a file, or the names in a folder; raises DeviceError."""
    with device_errors(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_store(paths: StorePaths) -> None:
    """Wait until the device has a store's folders and its description."""
    for folder in (paths.root.parent, paths.root, *paths.folders()):
        sync_path(folder)
    for file in (paths.steps / "zarr.json", paths.description):
        if file.exists():
            sync_path(file)


def sync_tree(folder: Path) -> None:
    """Wait until the device has everything below a folder."""
    for parent, _, files in os.walk(folder):
        for name in files:
            sync_path(Path(parent, name))
        sync_path(Path(parent))


class Syncing:
    """What of one segment still has to reach the device.

    Rows go first and their record later, so that no record stands for rows that are gone. Where the
    rule lets episodes wait, the kernel may write a record earlier; its checksums tell then.
    """

    def __init__(self, rule: SyncRule, folder: Path, log: LogAppender) -> None:
        self._rule = rule
        self._folder = folder
        self._log = log
        self._rows = 0
        """Rows that are on the device and do not change any more."""
        self._waiting = 0
        self._since = 0.0

    def before_record(self, arrays: Arrays, rows: int) -> None:
        """Bring rows [0, rows) to the device, where their record must not be there earlier."""
        if self._rule.episodes == 1:
            self._sync_rows(arrays, rows, rows)

    def after_record(self, arrays: Arrays, rows: int) -> None:
        """Count an episode that was appended; bring all that wait to the device when it is time."""
        now = time.monotonic()
        if not self._waiting:
            self._since = now
        self._waiting += 1
        late = 0 < self._rule.seconds <= now - self._since
        if late or self._waiting >= self._rule.episodes:
            self.sync(arrays, rows, rows)

    def sync(self, arrays: Arrays, rows: int, final: int) -> None:
        """Bring rows [0, rows) and all records to the device; raises DeviceError.

        Rows from ``final`` on are of an open episode, whose end may yet change them.
        """
        self._sync_rows(arrays, rows, final)
        with device_errors(self._log.path):
            self._log.sync()
        self._waiting = 0

    def _sync_rows(self, arrays: Arrays, rows: int, final: int) -> None:
        for name, array in arrays.items():
            with device_errors(self._folder / name):
                sync_pages(array[self._rows : rows], self._folder / name)
        self._rows = max(self._rows, final)
