"""A disk whose power can be cut: what it was not told to keep is gone.

Two ext4 file systems, one inside a file of the other. The inner one is the disk that a store is
on; the outer one plays the disk's volatile cache. ``cut`` shuts the outer one down without a flush
(EXT4_IOC_SHUTDOWN, which xfstests uses for the same purpose), at one instant for all processes:
what the inner file system had written without asking for a flush is then as lost as what it had
not written. ``restore`` mounts both again; their journals are replayed as after a real power cut.

That is the worst disk that still keeps its word. A disk that says it flushed and did not is beyond
any program.
"""

from __future__ import annotations

import fcntl
import gc
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["PowerDisk", "loop_mount", "mount_tmpfs", "power_disk", "reboot", "unmount"]

_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125  # _IOR('X', 125, __u32)
_WITHOUT_FLUSH = 2
MIB = 2**20


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)


def loop_mount(image: Path, folder: Path, size: int = 0) -> None:
    """Mount ext4 in a file, made first where ``size`` is given; skips where that is refused."""
    try:
        if size:
            made = _run(
                "mkfs.ext4",
                "-q",
                "-F",
                "-E",
                "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
                image,
            )
            if made.returncode:
                pytest.skip(f"no ext4 can be made here: {made.stderr.strip()}")
        mounted = _run("mount", "-o", "loop", image, folder)
    except FileNotFoundError as error:
        pytest.skip(f"there is no {error.filename}, so no disk of one's own can be mounted")
    if mounted.returncode:
        pytest.skip(f"mounting a disk image is not allowed here: {mounted.stderr.strip()}")


def mount_tmpfs(folder: Path, size: str) -> None:
    """Mount a tmpfs of ``size``, such as "8m"; skips where that is refused."""
    try:
        mounted = _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
    except FileNotFoundError:
        pytest.skip("there is no mount command, so no disk of one's own can be had")
    if mounted.returncode:
        pytest.skip(f"mounting a small disk is not allowed here: {mounted.stderr.strip()}")


def unmount(folder: Path) -> None:
    """Unmount what is mounted there, also when a process that was just killed still lets go."""
    gc.collect()
    for _ in range(200):
        if not os.path.ismount(folder) or _run("umount", folder).returncode == 0:
            return
        time.sleep(0.02)
    _run("umount", "-l", folder)


class PowerDisk:
    """``folder`` is the disk's root; made by ``power_disk``."""

    def __init__(self, place: Path, size: int) -> None:
        self._image = place / "outer.img"
        self._cache = place / "outer"
        self.folder = place / "disk"
        for each in (self._cache, self.folder):
            each.mkdir()
        with self._image.open("wb") as file:
            file.truncate(size + 24 * MIB)
        loop_mount(self._image, self._cache, size)
        with self._inner.open("wb") as file:  # written out, so that later writes change no metadata
            for _ in range(size // MIB):
                file.write(bytes(MIB))
            os.fsync(file.fileno())
        loop_mount(self._inner, self.folder, size)

    @property
    def _inner(self) -> Path:
        return self._cache / "inner.img"

    def cut(self) -> None:
        """Cut the power: from now on every write and flush fails, and unflushed data is gone."""
        descriptor = os.open(self._cache, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
        finally:
            os.close(descriptor)

    def restore(self) -> None:
        """Power on; every process that had files open here must be dead."""
        self.unmount()
        loop_mount(self._image, self._cache)
        loop_mount(self._inner, self.folder)

    def unmount(self) -> None:
        unmount(self.folder)
        unmount(self._cache)


@contextmanager
def power_disk(place: Path, size: int = 96 * MIB) -> Iterator[PowerDisk]:
    """A disk below ``place``; skips, saying why, where it cannot be had."""
    for folder in (place / "disk", place / "outer"):
        unmount(folder)
    disk = None
    try:
        disk = PowerDisk(place, size)
        yield disk
    finally:
        unmount(place / "disk")
        unmount(place / "outer")


def reboot(store: Path) -> None:
    """What else a power cut changes: lock files name a boot that is over."""
    for lock in (store / "locks").glob("*.lock"):
        content = lock.read_text()
        if '"boot": "' in content:
            before, _, after = content.partition('"boot": "')
            lock.write_text(before + '"boot": "before' + after)
