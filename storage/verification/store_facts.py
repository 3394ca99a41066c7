"""What is fixed about a store, read without trust from either of its two copies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from storage.environment_spec import EnvironmentSpec
from storage.errors import FormatVersionError, SharpwaveError, StoreNotFoundError
from storage.layout import FORMAT_VERSION, StorePaths
from storage.schema import Schema
from storage.verification.findings import Finding, finding
from storage.zarr_metadata import encode, group_document

__all__ = ["RootFiles", "StoreFacts", "read_root"]


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """A store as its root metadata describes it."""

    paths: StorePaths
    uuid: str
    schema: Schema
    spec: EnvironmentSpec


class RootFiles(NamedTuple):
    """The root metadata and its copy: bytes, None where not there, and what is wrong with each."""

    text: bytes | None
    fault: str
    copy: bytes | None
    copy_fault: str

    @property
    def good(self) -> bytes | None:
        """The bytes that both files should have; None where neither is good."""
        if not self.fault:
            return self.text
        return self.copy if not self.copy_fault else None


def copy_of_root(paths: StorePaths) -> Path:
    """The second copy of the root metadata."""
    return paths.logs / "store.json"


def read_root(root: Path) -> tuple[StoreFacts | None, RootFiles, list[Finding]]:
    """The store's facts from the first good copy, None where there is none; and what was found.

    Raises StoreNotFoundError, FormatVersionError.
    """
    paths = StorePaths(root)
    text, copy = _read(paths.steps / "zarr.json"), _read(copy_of_root(paths))
    if text is None and copy is None and not any(paths.logs.glob("*.log")):
        raise StoreNotFoundError(
            f"{root} is no Sharpwave store: there is no {paths.steps / 'zarr.json'}. Give the "
            "folder that holds steps.zarr and log."
        )
    facts, fault = _facts(paths, text)
    copied, copy_fault = _facts(paths, copy)
    files = RootFiles(text, fault, copy, copy_fault)
    found = []
    if fault:
        found.append(finding("root-metadata", "steps.zarr/zarr.json", fault))
    elif copy is not None or _checksummed(text):
        differs = "" if copy == text else "it differs from steps.zarr/zarr.json"
        if copy_fault or differs:
            found.append(finding("root-copy", "log/store.json", copy_fault or differs))
    return (copied if fault else facts), files, found


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return b""


def _checksummed(text: bytes | None) -> bool:
    return text is not None and b'"checksum"' in text


def _facts(paths: StorePaths, text: bytes | None) -> tuple[StoreFacts | None, str]:
    """What a root document says, or what is wrong with it. Raises FormatVersionError."""
    if text is None:
        return None, "it is missing"
    try:
        attributes = json.loads(text)["attributes"]
        version = attributes["format_version"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None, "it is not JSON with attributes and a format_version"
    fault = _broken(text, attributes)
    if fault:
        return None, fault
    if type(version) is int and version > FORMAT_VERSION:
        raise FormatVersionError(
            f"{paths.root} is of format version {version}; this release reads up to "
            f"{FORMAT_VERSION}. Install a newer Sharpwave."
        )
    try:
        return _described(paths, attributes), ""
    except (
        SharpwaveError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        AssertionError,
    ) as e:
        return None, f"its schema or environment is broken ({e!r})"


def _broken(text: bytes, attributes: Mapping[str, Any]) -> str:
    """What is wrong with a document whose attributes these are, before they are looked at."""
    try:
        if encode(group_document(attributes)) != text:
            return "its bytes are not those that a writer writes"
    except (TypeError, ValueError, RecursionError):
        return "its attributes are no JSON object"
    return ""


def _described(paths: StorePaths, attributes: Mapping[str, Any]) -> StoreFacts:
    spec = EnvironmentSpec.from_json(attributes["environment"])
    schema = Schema.from_json(attributes["schema"], spec.observation_space, spec.action_space)
    return StoreFacts(paths, str(attributes["store_uuid"]), schema, spec)
