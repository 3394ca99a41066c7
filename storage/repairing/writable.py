"""Whether a repair may write where it has to, found out before it changes anything."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from storage.atomic import disk_full_as_error
from storage.errors import ReadOnlyStoreError
from storage.layout import StorePaths
from storage.repairing.plan import SegmentPlan

__all__ = ["require_writable"]


def require_writable(paths: StorePaths, plans: Iterable[SegmentPlan]) -> None:
    """Raise ReadOnlyStoreError where a folder, or a file that is to change, cannot be written."""
    try:
        for folder in paths.folders():
            with disk_full_as_error(folder, 4096):
                folder.mkdir(exist_ok=True)
    except PermissionError:
        raise _denied(paths, paths.root) from None
    for path in (*paths.folders(), *(each for plan in plans for each in _of(paths, plan))):
        there = os.path.lexists(path) and not path.is_symlink()
        if there and not os.access(path, os.W_OK, effective_ids=True):
            raise _denied(paths, path)
    if os.statvfs(paths.root).f_flag & os.ST_RDONLY:
        raise _denied(paths, paths.root)


def _of(paths: StorePaths, plan: SegmentPlan) -> Iterator[Path]:
    """What a repair of a segment may write into or rename."""
    yield paths.lock(plan.segment)
    folder = paths.segment(plan.segment)
    yield folder
    if folder.is_dir() and not folder.is_symlink():
        for column in sorted(folder.iterdir()):
            yield column
            if column.is_dir() and not column.is_symlink():
                yield from sorted(column.glob("c.*"))


def _denied(paths: StorePaths, path: Path) -> ReadOnlyStoreError:
    return ReadOnlyStoreError(
        f"cannot repair {paths.root}, for {path} cannot be written: repair as the owner of the "
        "files, or copy the store to where it can be written; nothing was changed"
    )
