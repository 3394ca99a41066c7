"""From older format versions to this release's: a chain of steps, each over a whole store.

The new store is built beside the old one, ``.NAME.migrating``, and takes its place by one rename,
so that a kill at any instant leaves one of the two, whole, under the store's name. Column files
are not copied but linked, for they are large and no step changes their bytes in place. The old
store stays beside the new one, ``NAME.v0``, for whoever wants to compare; nobody deletes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from storage.atomic import disk_full_as_error
from storage.containment import open_regular, require_folders
from storage.description import read_metadata
from storage.errors import (
    ConfigError,
    CorruptStoreError,
    FormatVersionError,
    ReadOnlyStoreError,
    SegmentLockedError,
    StoreNotFoundError,
)
from storage.layout import FORMAT_VERSION, StorePaths, segment_id
from storage.lock import SegmentLock
from storage.overlay_lock import OverlayLock
from storage.store_copy import copy_store, exchange

__all__ = ["STEPS", "Progress", "Step", "migrate", "stored_version"]

Step = Callable[[StorePaths], None]
"""Makes a store of version n one of n + 1, its root metadata included.

Called with a copy that nobody else sees. It replaces files by rename (``storage.atomic``) and never
changes one in place: the old store shares the column files. What it raises ends the migration, and
the store stays as it was.
"""
Progress = Callable[[str, int, int], None]
"""Told of each part of the work: what it is, how much of it is done, and how much there is."""

STEPS: Mapping[int, Step] = {}
"""The steps of this release by the version that they start from. There is no older version yet."""


def migrate(
    path: str | os.PathLike[str],
    *,
    steps: Mapping[int, Step] = STEPS,
    version: int = FORMAT_VERSION,
    progress: Progress | None = None,
) -> Path | None:
    """Bring the store at ``path`` to a format version; gives where the old one is kept.

    None when the store has that version already. May be called again after a kill, and does
    nothing twice. Needs disk space for logs and metadata, not for columns.

    Raises StoreNotFoundError, CorruptStoreError, FormatVersionError for a newer store or one that
    no step starts from, SegmentLockedError or OverlayInUseError while somebody writes,
    ReadOnlyStoreError, DiskFullError; the store is then as it was.
    """
    root = Path(path).resolve()
    left = os.path.lexists(_new(root)) or os.path.lexists(_lock_path(root))
    if not left and _version_or_none(root) == version:
        return None  # without a lock, which needs a folder that may be written
    if os.path.ismount(root):
        raise ConfigError(
            f"{root} is where a file system is mounted, and nothing can be renamed over it; move "
            "the store into a folder of its own there"
        )
    tell = progress or _silent
    with _alone(root):
        _finish_exchange(root, version)
        found = stored_version(root)
        kept = _finish_keeping(root, found)
        if found == version:
            return kept
        chain = _chain(root, found, version, steps)
        try:
            with ExitStack() as locks:
                _lock_all(StorePaths(root), locks)
                _build(root, found, chain, tell)
                return _replace(root, found, tell)
        except PermissionError as error:
            raise ReadOnlyStoreError(
                f"{root} cannot be migrated: {error.filename}: {error.strerror}. Copy the store to "
                "where this user may write"
            ) from error


def stored_version(root: Path) -> int:
    """The format version that a store's root metadata names."""
    paths = StorePaths(root)
    require_folders(paths)
    metadata = paths.steps / "zarr.json"
    try:
        version = read_metadata(metadata)["attributes"]["format_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise StoreNotFoundError(f"{root} is no Sharpwave store: there is no {metadata}") from None
    except (LookupError, TypeError):
        version = None
    if type(version) is not int:
        raise CorruptStoreError(f"{metadata} names no format version; restore it from a copy")
    return version


def _chain(root: Path, found: int, version: int, steps: Mapping[int, Step]) -> list[Step]:
    if found > version:
        raise FormatVersionError(
            f"{root} is of format version {found}; this release knows {version}. Install a newer "
            "Sharpwave"
        )
    missing = [number for number in range(found, version) if number not in steps]
    if missing:
        raise FormatVersionError(
            f"{root} is of format version {found}, and there is no way from {missing[0]} to "
            f"{missing[0] + 1} in this release; open it by the release that wrote it"
        )
    return [steps[number] for number in range(found, version)]


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Keep other migrations of the same store out, until the end of this process at the latest."""
    if not root.parent.is_dir():
        raise StoreNotFoundError(f"{root} is no Sharpwave store: there is no {root.parent}")
    path = _lock_path(root)
    try:
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise ReadOnlyStoreError(
            f"{root} cannot be migrated: {path}: {error.strerror}. Copy the store to where this "
            "user may write"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            current = path.stat().st_ino == os.fstat(descriptor).st_ino
        except (BlockingIOError, FileNotFoundError):
            current = False
        if not current:  # held, or removed by one that ended between the open and the lock
            raise SegmentLockedError(f"{root} is being migrated by another process; let it finish")
        try:
            yield
        finally:
            path.unlink()
    finally:
        os.close(descriptor)


def _lock_path(root: Path) -> Path:
    return root.with_name(f".{root.name}.migrating.lock")


def _new(root: Path) -> Path:
    return root.with_name(f".{root.name}.migrating")


def _lock_all(paths: StorePaths, locks: ExitStack) -> None:
    """Hold every segment and overlay, so that nobody writes meanwhile."""
    names = sorted(os.listdir(paths.locks)) if paths.locks.is_dir() else []
    for name in names:
        segment = segment_id(Path(name).stem)
        if segment is not None:
            locks.callback(SegmentLock.acquire(paths, segment).release)
    names = sorted(os.listdir(paths.overlays)) if paths.overlays.is_dir() else []
    for name in names:
        if name.endswith(".lock"):
            locks.callback(OverlayLock(paths.overlays / name).release)


def _build(root: Path, found: int, chain: list[Step], tell: Progress) -> None:
    """Make the new store beside the old one."""
    new = _new(root)
    shutil.rmtree(new, ignore_errors=True)  # of a migration that was killed
    try:
        with disk_full_as_error(new, 0):
            copy_store(root, new, partial(tell, "files"))
            for done, step in enumerate(chain):
                tell("format version", found + done, found + len(chain))
                step(StorePaths(new))
                if stored_version(new) != found + done + 1:
                    raise CorruptStoreError(
                        f"the step from version {found + done} left version {stored_version(new)} "
                        f"in {new}; the store at {root} is as it was"
                    )
        _check(root, new)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def _check(root: Path, new: Path) -> None:
    """Raise CorruptStoreError when the new store lacks something that this release can see."""
    if stored_version(new) != FORMAT_VERSION:
        return
    from storage.opening import open as open_store

    with open_store(new) as store:
        lacking = store.problems()
    if lacking:
        raise CorruptStoreError(
            f"the store at {root} stays as it was, for its new form has {lacking[0]}"
        )


def _replace(root: Path, found: int, tell: Progress) -> Path:
    """Put the new store in the old one's place; gives where the old one is."""
    new = _new(root)
    os.sync()  # a power cut after the rename finds the new files whole
    tell("replace", 0, 2)
    kept = _kept(root, found)
    if exchange(root, new):
        tell("replace", 1, 2)
        new.rename(kept)
    else:
        root.rename(kept)
        tell("replace", 1, 2)
        new.rename(root)
    tell("replace", 2, 2)
    return kept


def _kept(root: Path, version: int) -> Path:
    """Where an old store goes: a name that is free."""
    name, serial = root.with_name(f"{root.name}.v{version}"), 0
    while os.path.lexists(name):
        serial += 1
        name = root.with_name(f"{root.name}.v{version}.{serial}")
    return name


def _finish_exchange(root: Path, version: int) -> None:
    """Where two renames were needed and a kill came between: do the second one."""
    if not os.path.lexists(root) and _version_or_none(_new(root)) == version:
        _new(root).rename(root)


def _finish_keeping(root: Path, found: int) -> Path | None:
    """Where a kill came right after the exchange, the old store still has the new one's name."""
    new = _new(root)
    version = _version_or_none(new)
    if version is None or version >= found:
        return None  # nothing, or a copy that was to take the store's place and did not
    kept = _kept(root, version)
    new.rename(kept)
    return kept


def _version_or_none(root: Path) -> int | None:
    """The version of a whole store; None for half a copy, or nothing."""
    try:
        return stored_version(root)
    except (StoreNotFoundError, CorruptStoreError):
        return None


def _silent(what: str, done: int, total: int) -> None:
    del what, done, total
