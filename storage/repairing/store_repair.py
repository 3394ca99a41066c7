"""Mend what belongs to no segment: the root metadata, its copy, and those of overlays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.atomic import disk_full_as_error, write_atomic
from storage.containment import kind_of, require_inside
from storage.layout import StorePaths, segment_id
from storage.repairing.actions import Action
from storage.repairing.quarantine import Kept, Quarantine, whole_file
from storage.root_metadata import root_document
from storage.syncing import sync_path
from storage.verification.inventory import misplaced_locks
from storage.verification.overlays import check_overlays, overlay_document
from storage.verification.store_facts import RootFile, RootFiles, StoreFacts

__all__ = ["StorePlan", "clear_locks", "mend_store", "plan_store"]


@dataclass(frozen=True, slots=True)
class StorePlan:
    """Small files that are written anew, relative to the store, and what goes into them."""

    documents: Mapping[str, bytes]
    why: tuple[str, ...]
    locks: tuple[str, ...] = ()
    """What lies where lock files belong and is none, relative to the store; it is moved."""

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.documents or self.locks)

    def actions(self) -> list[Action]:
        """The plan in words."""
        return [
            Action("clear-lock", None, f"move {name} to quarantine/", files=(name,))
            for name in self.locks
        ] + [
            Action("restore-root", None, f"write {name} anew", files=(name,))
            for name in self.documents
        ]


def plan_store(facts: StoreFacts, files: RootFiles) -> StorePlan:
    """What has to be written; nothing of it where all is well."""
    documents: dict[str, bytes] = {}
    why = []
    if files.own.fault and files.copy.content is not None:
        documents["steps.zarr/zarr.json"] = files.copy.content
        why.append(f"steps.zarr/zarr.json: {files.own.fault}")
    elif files.own.checksum is not None:
        document = root_document(_without_checksum(files.own))
        if _is_other(files.copy, document, files.own.checksum):
            documents["log/store.json"] = document
            why.append(f"log/store.json: {files.copy.fault or 'not that of steps.zarr/zarr.json'}")
    for each in check_overlays(facts):
        if each.kind == "overlay-metadata":
            name = Path(each.file).parent.stem
            documents[each.file] = overlay_document(facts, name)
            why.append(str(each))
    root = facts.paths.root
    locks = [each.relative_to(root).as_posix() for each in misplaced_locks(facts.paths)]
    return StorePlan(documents, tuple(why), tuple(locks))


def clear_locks(paths: StorePaths, names: Iterable[str]) -> list[str]:
    """Move what nobody can lock out of the places of lock files; gives the folders of quarantine.

    A segment's id stays taken: an empty lock file, which vouches for nothing, stands for it.
    """
    kept = []
    for name in names:
        path = paths.root / name
        if kind_of(path.lstat().st_mode) is None:
            continue
        why = [f"{name}: no regular file, which a lock file is"]
        folder = Quarantine(paths, None).move({name.replace("/", "."): path}, why)
        kept.append(folder.relative_to(paths.root).as_posix())
        if path.parent == paths.locks and segment_id(path.stem) is not None:
            path.touch()
    return kept


def _without_checksum(file: RootFile) -> dict[str, Any]:
    return {key: value for key, value in file.attributes.items() if key != "checksum"}


def _is_other(copy: RootFile, document: bytes, checksum: int) -> bool:
    """Whether the copy is not as its writer wrote it; others may add attributes to the original."""
    if copy.fault or copy.checksum != checksum:
        return True
    return copy.content != document and root_document(_without_checksum(copy)) != copy.content


def mend_store(facts: StoreFacts, plan: StorePlan) -> list[str]:
    """Keep the old bytes in quarantine, then write the new ones; gives the folders there."""
    if not plan.documents:
        return []
    root = facts.paths.root
    parts: dict[str, Kept] = {}
    for name in plan.documents:
        parts.update(whole_file(root / name, root))
    kept = Quarantine(facts.paths, None).keep(parts, list(plan.why))
    moved = []
    for name, document in plan.documents.items():
        path = root / name
        require_inside(root, path.parent)
        if os.path.lexists(path) and kind_of(path.lstat().st_mode) is not None:
            quarantine = Quarantine(facts.paths, None)
            moved.append(quarantine.move({name.replace("/", "."): path}, list(plan.why)))
        with disk_full_as_error(path, len(document)):
            path.parent.mkdir(exist_ok=True)
        write_atomic(path, document, facts.paths.staging, sync=True)
        sync_path(path)
        sync_path(path.parent)
    folders = ([] if kept is None else [kept]) + moved
    return [folder.relative_to(root).as_posix() for folder in folders]
