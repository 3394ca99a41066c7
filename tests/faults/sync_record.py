"""A record of what a process asked its disk to keep: a power cut where nothing can be mounted.

It follows fsync(2), fdatasync(2) and msync(2) of one process, and rebuilds a folder from what they
covered: names as they were when their folder was synced, and of each file the bytes that were
synced, zeros in between. What it shows: that the process asked, in time, for all that its
acknowledgements need. What the kernel and the disk make of it, ``power`` shows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage.syncing

__all__ = ["SyncRecord"]


class SyncRecord:
    """What is synced in ``place``; files and folders are known by inodes: renames lose nothing.

    Syncs elsewhere are not looked at, for inodes that become free there may come again here.
    """

    def __init__(
        self, patch: pytest.MonkeyPatch, place: Path, after_sync: Callable[[], object]
    ) -> None:
        self._place = place.resolve()
        self._bytes: dict[int, bytearray] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        """Of each folder: its names, with their inodes and whether they are folders."""
        self._after = after_sync
        self.syncs = 0
        msync = storage.syncing.sync_pages
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._following(getattr(os, name), self._descriptor))
        patch.setattr(storage.syncing, "sync_pages", self._following(msync, self._pages))

    def _following(self, call: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def followed(*args: Any) -> Any:
            result = call(*args)
            note(*args)
            self.syncs += 1
            self._after()
            return result

        return followed

    def _descriptor(self, descriptor: int) -> None:
        path, inode = Path(f"/proc/self/fd/{descriptor}"), os.fstat(descriptor).st_ino
        if not path.resolve().is_relative_to(self._place):
            return
        if path.is_dir():
            self._bytes.pop(inode, None)
            self._names[inode] = {
                each.name: (each.inode(), each.is_dir(follow_symlinks=False))
                for each in os.scandir(path)
            }
        else:
            self._names.pop(inode, None)
            self._bytes[inode] = bytearray(path.read_bytes())

    def _pages(self, array: np.ndarray[Any, Any], folder: Path) -> None:
        """An msync brings whole pages, and the length of their file."""
        if not array.nbytes or not folder.resolve().is_relative_to(self._place):
            return
        (file,) = folder.glob("c.0*")
        page = os.sysconf("SC_PAGE_SIZE")
        address = array.ctypes.data
        first = _file_offset(address) // page * page
        after = -(-(_file_offset(address) + array.nbytes) // page) * page
        content = file.read_bytes()
        kept = self._bytes.setdefault(file.stat().st_ino, bytearray())
        kept.extend(bytes(len(content) - len(kept)))
        kept[first:after] = content[first:after]

    def rebuild(self, root: Path, target: Path) -> None:
        """What a power cut now would leave of the folder ``root``."""
        parent = self._names.get(root.parent.stat().st_ino, {})
        if root.name in parent:
            self._rebuild(*parent[root.name], target)

    def _rebuild(self, inode: int, folder: bool, target: Path) -> None:
        if folder:
            target.mkdir()
            for name, each in self._names.get(inode, {}).items():
                self._rebuild(*each, target / name)
        else:
            target.write_bytes(self._bytes.get(inode, b""))


def _file_offset(address: int) -> int:
    """Where in its file a mapped address lies."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, _, offset, *_ = line.split()
        start, end = (int(each, 16) for each in span.split("-"))
        if start <= address < end:
            return int(offset, 16) + address - start
    raise AssertionError("the address is not mapped")
