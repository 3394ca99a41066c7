"""Where a repair puts what it takes out: a folder with a note, complete before anything changes."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storage.atomic import disk_full_as_error
from storage.checksum import crc32c
from storage.description import LARGEST_METADATA
from storage.layout import StorePaths, segment_name
from storage.repairing.rows import RowBytes
from storage.syncing import sync_path, sync_tree
from storage.verification.regular_files import names_in, read_file

__all__ = ["Kept", "Quarantine", "whole_file"]

NOTE = "note.json"
_FOLDER = 4096
"""Bytes that a new folder may take."""
Kept = Mapping[str, bytes | RowBytes | Path]
"""File names within the folder, and what they hold: a path is linked there, not copied."""


def whole_file(path: Path, root: Path, limit: int = LARGEST_METADATA) -> dict[str, Kept]:
    """A file that is to be kept, by its key; one of more than ``limit`` bytes is linked.

    Nothing where it cannot be read for good, or is not there.
    """
    name = path.relative_to(root).as_posix()
    try:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_size > limit:
            return {f"link {name} {status.st_ino} {status.st_size}": {name: path}}
        data = read_file(path, limit)
    except OSError:
        return {}
    return {f"file {name} {crc32c(data):08x}": {name: data}}


class Quarantine:
    """The folders ``quarantine/ID.NNN`` of one segment, or ``quarantine/store.NNN``.

    A folder is made in staging/ and renamed into place, so that one that is there is whole. Its
    note names what it holds by keys, so that a repair that was killed keeps nothing twice.
    """

    def __init__(self, paths: StorePaths, segment: int | None) -> None:
        self._paths = paths
        self._name = "store" if segment is None else segment_name(segment)

    def keys(self) -> set[str]:
        """The keys of everything that was kept before."""
        return {key for _, note in self._notes() for key in note.get("keys", ())}

    def keep(self, parts: Mapping[str, Kept], why: list[str]) -> Path | None:
        """Keep the parts, by key, that were not kept before; None where nothing is new."""
        known = self.keys()
        new = {key: files for key, files in parts.items() if key not in known}
        if not new:
            return None
        staged = self._stage(sorted(new), why, "copied")
        for files in new.values():
            for name, data in files.items():
                _write(staged / name, data)
        return self._place(staged)

    def folder_for_moves(self, names: list[str], why: list[str]) -> Path:
        """A folder to move files of these names into, perhaps one that a killed repair began."""
        for folder, note in self._notes():
            taken = [name for name in names if (folder / name).exists()]
            if note.get("action") == "moved" and not taken:
                return folder
        return self._place(self._stage([], why, "moved"))

    def move(self, sources: Mapping[str, Path], why: list[str]) -> Path:
        """Move what is there into a folder, by names; gives the folder."""
        there = {name: source for name, source in sources.items() if os.path.lexists(source)}
        folder = self.folder_for_moves(list(there), why)
        for name, source in there.items():
            source.rename(folder / name)
            sync_path(folder)
            sync_path(source.parent)
        return folder

    def _notes(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for name in names_in(self._paths.quarantine):
            folder = self._paths.quarantine / name
            if not name.startswith(f"{self._name}."):
                continue
            try:
                note = json.loads(read_file(folder / NOTE))
            except (OSError, ValueError, RecursionError):
                continue
            if isinstance(note, dict):
                yield folder, note

    def _stage(self, keys: list[str], why: list[str], action: str) -> Path:
        staged = self._paths.staging / f"{self._name}.repair"
        shutil.rmtree(staged, ignore_errors=True)  # a copy that a killed repair did not finish
        note = {
            "action": action,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "why": why,
            "keys": keys,
        }
        text = json.dumps(note, indent=2)
        with disk_full_as_error(staged, len(text)):
            staged.mkdir()
            (staged / NOTE).write_text(text)
        return staged

    def _place(self, staged: Path) -> Path:
        sync_tree(staged)
        serial = 0
        with disk_full_as_error(self._paths.quarantine, _FOLDER):
            self._paths.quarantine.mkdir(exist_ok=True)
            while (folder := self._paths.quarantine / f"{self._name}.{serial:03d}").exists():
                serial += 1
            staged.rename(folder)
        sync_path(folder.parent)
        return folder


def _write(path: Path, data: bytes | RowBytes | Path) -> None:
    size = data.size if isinstance(data, RowBytes) else _FOLDER
    with disk_full_as_error(path, max(_FOLDER, len(data) if isinstance(data, bytes) else size)):
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, RowBytes):
            data.write_to(path)
        elif isinstance(data, Path):
            os.link(data, path, follow_symlinks=False)
        else:
            path.write_bytes(data)
