"""Mend what belongs to no segment: the root metadata, its copy, and those of overlays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.atomic import disk_full_as_error, write_atomic
from storage.containment import require_inside
from storage.repairing.actions import Action
from storage.repairing.quarantine import Kept, Quarantine, whole_file
from storage.root_metadata import root_document
from storage.syncing import sync_path
from storage.verification.overlays import check_overlays, overlay_document
from storage.verification.store_facts import RootFile, RootFiles, StoreFacts

__all__ = ["StorePlan", "mend_store", "plan_store"]


@dataclass(frozen=True, slots=True)
class StorePlan:
    """Small files that are written anew, relative to the store, and what goes into them."""

    documents: Mapping[str, bytes]
    why: tuple[str, ...]

    def actions(self) -> list[Action]:
        """The plan in words."""
        return [
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
    return StorePlan(documents, tuple(why))


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
    for name, document in plan.documents.items():
        path = root / name
        require_inside(root, path)
        with disk_full_as_error(path, len(document)):
            path.parent.mkdir(exist_ok=True)
        write_atomic(path, document, facts.paths.staging, sync=True)
        sync_path(path)
        sync_path(path.parent)
    return [] if kept is None else [kept.relative_to(root).as_posix()]
