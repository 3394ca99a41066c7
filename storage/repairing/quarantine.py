"""Where a repair puts what it takes out: a folder with a note, complete before anything changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storage.atomic import disk_full_as_error
from storage.layout import StorePaths, segment_name
from storage.repairing.rows import RowBytes
from storage.syncing import sync_path, sync_tree

__all__ = ["Kept", "Quarantine"]

NOTE = "note.json"
Kept = Mapping[str, bytes | RowBytes]
"""File names within the folder, and what they hold."""


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

    def _notes(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for folder in sorted(self._paths.quarantine.glob(f"{self._name}.*")):
            try:
                note = json.loads((folder / NOTE).read_bytes())
            except (OSError, ValueError):
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
        with disk_full_as_error(staged, 0):
            staged.mkdir()
            (staged / NOTE).write_text(json.dumps(note, indent=2))
        return staged

    def _place(self, staged: Path) -> Path:
        sync_tree(staged)
        serial = 0
        self._paths.quarantine.mkdir(exist_ok=True)
        while (folder := self._paths.quarantine / f"{self._name}.{serial:03d}").exists():
            serial += 1
        staged.rename(folder)
        sync_path(folder.parent)
        return folder


def _write(path: Path, data: bytes | RowBytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with disk_full_as_error(path, 0):
        if isinstance(data, RowBytes):
            data.write_to(path)
        else:
            path.write_bytes(data)
