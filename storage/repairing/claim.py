"""What a repair holds while it changes a store: one repair at a time, and no writer where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from storage.errors import DiskFullError, SegmentLockedError
from storage.file_lock import FileLock, LockHeldError
from storage.layout import StorePaths, segment_name
from storage.lock import SegmentLock
from storage.overlay_lock import OverlayLock
from storage.repairing.plan import SegmentPlan
from storage.verification.regular_files import judging

__all__ = ["REPAIR_LOCK", "only_repair", "segments_held"]

REPAIR_LOCK = "locks/repair.lock"
"""Relative to the store."""


@contextmanager
def only_repair(paths: StorePaths) -> Iterator[None]:
    """Be the one repair of a store; SegmentLockedError where another is at work."""
    path = paths.root / REPAIR_LOCK
    try:
        with judging(path), _room_for_a_lock(paths):
            lock = FileLock(path)
    except LockHeldError as holder:
        raise SegmentLockedError(
            f"another repair of {paths.root} is at work: {holder}. Let it finish, then repair "
            "again; this one changed nothing"
        ) from None
    try:
        with _room_for_a_lock(paths):
            lock.sign()
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


@contextmanager
def segments_held(paths: StorePaths, plans: Iterable[SegmentPlan]) -> Iterator[frozenset[str]]:
    """Hold the locks of segments, and of the overlays that it gives by name.

    Raises SegmentLockedError or OverlayInUseError where somebody else does, nothing changed.
    """
    with ExitStack() as stack, _room_for_a_lock(paths):
        names: set[str] = set()
        for plan in plans:
            stack.callback(_segment_lock(paths, plan.segment).release)
            names.update(plan.overlays)
        for name in sorted(names):
            path = paths.overlays / f"{name}.lock"
            with judging(path):
                stack.callback(OverlayLock(path).release)
        held = stack.pop_all()
    with held:
        yield frozenset(names)


def _segment_lock(paths: StorePaths, segment: int) -> SegmentLock:
    try:
        with judging(paths.lock(segment)):
            return SegmentLock.acquire(paths, segment)
    except SegmentLockedError as error:
        raise SegmentLockedError(
            f"another repair or a writer holds segment {segment_name(segment)} of {paths.root}, "
            f"which is damaged: {error.__context__}. Let it finish, then repair again; nothing was "
            "changed"
        ) from None


@contextmanager
def _room_for_a_lock(paths: StorePaths) -> Iterator[None]:
    try:
        yield
    except DiskFullError:
        raise DiskFullError(
            f"disk full: there is no room for a lock file in {paths.locks}, without which nothing "
            "is repaired. Nothing was changed; free some space, and repair again"
        ) from None
