"""What lies in a store's folders: its segments, and what is none of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from storage.containment import kind_of
from storage.layout import StorePaths, segment_id
from storage.verification.findings import Finding, finding, hidden_finding
from storage.verification.live_writers import has_live_writer
from storage.verification.regular_files import CannotJudgeError, names_in

__all__ = ["half_dropped", "hidden_folders", "misplaced_locks", "segments_of", "strays"]

_HALF_WRITTEN = re.compile(r".*\.(\d+)\.\d+")
"""A small file before it is renamed into place: name, process id, serial number."""
_SEED_LOCK = re.compile(r"seed-\d+\.lock")
_OVERLAY_PARTS = {".zarr", ".staging", ".lock", ".damaged"}
_FIXED = {"dropped"}
"""Folders of the store besides those of every new one."""


def segments_of(paths: StorePaths) -> list[int]:
    """Every segment that has a log or a folder."""
    logs = (segment_id(file.stem) for file in _entries(paths.logs) if file.suffix == ".log")
    folders = (segment_id(folder.name) for folder in _entries(paths.steps))
    return sorted({each for each in (*logs, *folders) if each is not None})


def hidden_folders(paths: StorePaths) -> Iterator[Finding]:
    """A finding on each folder that may not be listed, which elsewhere here seems empty."""
    for folder in (paths.root, *paths.folders()):
        try:
            names_in(folder)
        except CannotJudgeError as error:
            yield hidden_finding(error, paths.root)


def half_dropped(paths: StorePaths, segment: int) -> bool:
    """Whether the next writer goes on dropping the segment, or takes its making back."""
    name = paths.segment(segment).name
    return (paths.staging / f"{name}.dropping").is_dir()


def strays(paths: StorePaths) -> Iterator[Finding]:
    """A note on everything that is no part of a segment."""
    known = {folder.name for folder in paths.folders()} | _FIXED
    yield from _unknown(paths.root, paths, lambda name: name in known)
    yield from _unknown(paths.steps, paths, _names_segment_or("zarr.json"))
    yield from _unknown(paths.logs, paths, _names_segment_or("store.json", ".log", ".open"))
    yield from _unknown(paths.episodes, paths, _names_segment_or("", ".arrow"))
    yield from _unknown(paths.locks, paths, _names_lock)
    yield from _unknown(paths.overlays, paths, lambda name: Path(name).suffix in _OVERLAY_PARTS)
    yield from _staged(paths)
    for lock in misplaced_locks(paths):
        what = f"it is {kind_of(lock.lstat().st_mode)}, where a lock file belongs"
        yield finding("lock-file", _relative(lock, paths), what, segment=_segment_in(lock))
    for kind, folder in (("orphans", paths.orphans), ("quarantine", paths.quarantine)):
        for entry in _entries(folder):
            yield finding(kind, _relative(entry, paths), "kept aside", segment=_segment_in(entry))
    for damaged in _entries(paths.overlays):
        for entry in _entries(damaged) if damaged.suffix == ".damaged" else ():
            yield finding("quarantine", _relative(entry, paths), "set aside by a view")


def misplaced_locks(paths: StorePaths) -> list[Path]:
    """What bears the name of a lock file and is no regular file, so that nobody can lock it."""
    named = [each for each in _entries(paths.locks) if _names_lock(each.name)]
    named += [each for each in _entries(paths.overlays) if each.suffix == ".lock"]
    return [each for each in named if _is_misplaced(each)]


def _is_misplaced(path: Path) -> bool:
    try:
        return kind_of(path.lstat().st_mode) is not None
    except OSError:  # gone meanwhile
        return False


def _entries(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in names_in(folder)]
    except CannotJudgeError:
        return []


def _relative(path: Path, paths: StorePaths) -> str:
    return path.relative_to(paths.root).as_posix()


def _segment_in(entry: Path) -> int | None:
    return segment_id(entry.name.split(".")[0])


def _names_segment_or(name: str, *suffixes: str) -> Callable[[str], bool]:
    def known(entry: str) -> bool:
        if entry == name:
            return True
        stem, suffix = Path(entry).stem, Path(entry).suffix
        return segment_id(stem) is not None and suffix in (suffixes or ("",))

    return known


def _names_lock(entry: str) -> bool:
    """A segment's lock, that of a repair, or that of a collection with a seed."""
    return bool(_SEED_LOCK.fullmatch(entry)) or _names_segment_or("repair.lock", ".lock")(entry)


def _unknown(folder: Path, paths: StorePaths, known: Callable[[str], bool]) -> Iterator[Finding]:
    for entry in _entries(folder):
        if not known(entry.name):
            yield finding("stray", _relative(entry, paths), "not a file of the store")


def _staged(paths: StorePaths) -> Iterator[Finding]:
    for entry in _entries(paths.staging):
        segment = _segment_in(entry)
        half = _HALF_WRITTEN.fullmatch(entry.name)
        if half is not None and Path("/proc", half[1]).exists():
            continue
        if segment is not None and _may_be_held(paths, segment):
            continue
        yield finding("staging", _relative(entry, paths), "left half made", segment=segment)


def _may_be_held(paths: StorePaths, segment: int) -> bool:
    try:
        return has_live_writer(paths, segment)
    except CannotJudgeError:
        return True
