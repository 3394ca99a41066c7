"""One writer a segment: a lock on a file that also claims the segment's id, and names a boot."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from storage.errors import CorruptStoreError, DiskFullError, SegmentLockedError
from storage.file_lock import FileLock, LockHeldError, held_here, read_owner
from storage.layout import StorePaths, segment_id

__all__ = ["SegmentLock", "is_vouched", "next_segment"]

_CHECKED: Final = "checked"
"""Stands for the boot in lock files of segments whose rows were found on the disk."""


@lru_cache(maxsize=1)
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _vouches(owner: Any, file: str) -> bool:
    """Whether what a lock file says means that no row can have been lost.

    Said of another file, it was copied while somebody wrote, and tells nothing of the copy.
    """
    if not isinstance(owner, dict):
        return False
    boot = owner.get("boot")
    return boot == _CHECKED or (boot == _boot_id() and owner.get("file") == file)


def is_vouched(path: Path) -> bool:
    """Whether a lock file says that no row of its segment can have been lost with the machine.

    They were written since it started, or brought to the disk, or found there.
    """
    try:
        return held_here(path) or _vouches(*read_owner(path))
    except CorruptStoreError:  # no regular file: nobody can have written there
        return False


def next_segment(paths: StorePaths) -> int:
    """The least id above all that were ever claimed."""
    files = [*paths.locks.iterdir(), *paths.logs.iterdir(), *paths.steps.iterdir()]
    taken = [segment_id(file.stem) for file in files]
    return max((segment for segment in taken if segment is not None), default=-1) + 1


class SegmentLock(FileLock):
    """A held lock of a segment; ``release`` gives it back, and so does the end of the process."""

    __slots__ = ("segment", "vouched")

    def __init__(self, path: Path, segment: int, mode: str) -> None:
        super().__init__(path, mode)
        self.segment = segment
        self.vouched = mode == "x+" or _vouches(self.found, self.identity)
        """Whether no row can have been lost with the machine."""
        boot = self.found.get("boot") if isinstance(self.found, dict) and self.vouched else ""
        try:
            self.sign(boot=_boot_id() if mode == "x+" else str(boot))
        except BaseException:
            self.release()
            raise

    @classmethod
    def acquire(cls, paths: StorePaths, segment: int) -> SegmentLock:
        """Lock an existing segment; raises SegmentLockedError naming its live writer."""
        path = paths.lock(segment)
        try:
            return cls(path, segment, "a+")
        except LockHeldError as holder:
            raise SegmentLockedError(
                f"another live writer holds {path}: {holder}. Let it finish or stop it. Only going "
                "on from a position or checkpoint needs this segment; a new run writes segments of "
                "its own."
            ) from None

    @classmethod
    def claim(cls, paths: StorePaths, first: int | None = None) -> SegmentLock:
        """Take the next free segment id, atomically among all processes, and lock it.

        ``first`` is the least id to try, where the caller knows that all below it were claimed: it
        saves looking through the folders of a store of many segments.
        """
        segment = next_segment(paths) if first is None else first
        while True:
            path = paths.lock(segment)
            try:
                return cls(path, segment, "x+")
            except (FileExistsError, LockHeldError):
                segment += 1
            except DiskFullError:
                path.unlink(missing_ok=True)
                raise

    def vouch(self) -> None:
        """Say that all rows are on the disk: nobody need look after the next boot."""
        self.sign(boot=_CHECKED)
        self.vouched = True

    def take_up(self) -> None:
        """Say that more rows follow, which the next boot may not find."""
        self.sign(boot=_boot_id())

    def discard(self) -> None:
        """Give the id back as well, for a segment that never came to be."""
        self.path.unlink(missing_ok=True)
        self.release()
