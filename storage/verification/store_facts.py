"""What is fixed about a store, read without trust from either of its two copies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from storage.containment import require_folders
from storage.description import read_description
from storage.environment_spec import EnvironmentSpec
from storage.errors import CorruptStoreError, FormatVersionError, StoreNotFoundError
from storage.layout import FORMAT_VERSION, StorePaths
from storage.root_metadata import attributes_checksum, root_document
from storage.schema import Schema
from storage.verification.findings import Finding, finding, hidden_finding
from storage.verification.regular_files import CannotJudgeError, judging, names_in, read_file
from storage.zarr_metadata import group_document

__all__ = ["RootFile", "RootFiles", "StoreFacts", "examine_root"]


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """A store as its root metadata describes it."""

    paths: StorePaths
    uuid: str
    schema: Schema
    spec: EnvironmentSpec


class RootFile(NamedTuple):
    """One of the two files of root metadata."""

    content: bytes | None
    """None where it is not there, or cannot be read."""
    fault: str
    """What is wrong with it; nothing where it can be trusted."""
    attributes: Mapping[str, Any]
    facts: StoreFacts | None
    hidden: CannotJudgeError | None = None
    """Why nobody knows what is in it."""

    @property
    def checksum(self) -> Any:
        """The checksum that it holds; None in a store that was made before there was one."""
        return self.attributes.get("checksum")


class RootFiles(NamedTuple):
    """The root metadata and its copy."""

    own: RootFile
    copy: RootFile

    @property
    def good(self) -> RootFile | None:
        """The one to trust."""
        return next((file for file in self if not file.fault), None)


def examine_root(root: Path) -> tuple[RootFiles, list[Finding]]:
    """Both files, and what is wrong with them.

    Raises StoreNotFoundError, FormatVersionError, CorruptStoreError where a folder is a link.
    """
    paths = StorePaths(root)
    try:
        with judging(root):
            require_folders(paths)
    except CannotJudgeError as error:
        nothing = RootFile(None, "it cannot be read", {}, None, error)
        return RootFiles(nothing, nothing), [hidden_finding(error, root)]
    own, copy = (_read(paths, each) for each in (paths.steps / "zarr.json", paths.description))
    hidden = [each.hidden for each in (own, copy) if each.hidden is not None]
    if own.content is None and copy.content is None and not hidden and not _has_logs(paths):
        raise StoreNotFoundError(
            f"{root} is no Sharpwave store: there is no {paths.steps / 'zarr.json'}. Give the "
            "folder that holds steps.zarr and log."
        )
    if not own.fault and own.checksum is None and copy.checksum is not None:
        own = own._replace(fault="it has no checksum, its copy has one", facts=None)
    found = [hidden_finding(error, root) for error in hidden]
    if own.hidden is not None:
        return RootFiles(own, copy), found
    if own.fault:
        found.append(finding("root-metadata", "steps.zarr/zarr.json", own.fault))
    elif own.checksum is not None and copy.hidden is None:
        what = copy.fault or _unlike(own, copy)
        if what:
            found.append(finding("root-copy", "log/store.json", what))
    return RootFiles(own, copy), found


def _has_logs(paths: StorePaths) -> bool:
    try:
        return any(name.endswith(".log") for name in names_in(paths.logs))
    except CannotJudgeError:
        return True


def _read(paths: StorePaths, path: Path) -> RootFile:
    try:
        content = read_file(path)
    except FileNotFoundError:
        return RootFile(None, "it is missing", {}, None)
    except CannotJudgeError as error:
        return RootFile(None, f"it cannot be read: {error.why}", {}, None, error)
    except OSError as error:
        return RootFile(None, f"it cannot be read: {error.strerror}", {}, None)
    try:
        document = json.loads(content)
        attributes = document["attributes"]
        fault = _broken(document, attributes)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return RootFile(content, "it is not JSON with attributes", {}, None)
    if fault:
        return RootFile(content, fault, attributes, None)
    _check_version(path, attributes)
    try:
        spec, schema = read_description(attributes, path)
        facts = StoreFacts(paths, str(attributes["store_uuid"]), schema, spec)
    except CorruptStoreError as error:
        return RootFile(content, str(error), attributes, None)
    except LookupError:
        return RootFile(content, "its attributes lack the store_uuid", attributes, None)
    return RootFile(content, "", attributes, facts)


def _broken(document: Mapping[str, Any], attributes: Mapping[str, Any]) -> str:
    """What is wrong with a document, apart from what its attributes describe."""
    for key, value in group_document({}).items():
        if key != "attributes" and document.get(key) != value:
            return f"{key} is {document.get(key)!r}, not {value!r}"
    if attributes.get("checksum", None) not in (None, attributes_checksum(attributes)):
        return "its attributes fail their checksum"
    return ""


def _check_version(path: Path, attributes: Mapping[str, Any]) -> None:
    version = attributes.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise FormatVersionError(
            f"{path} is of format version {version}; this release reads up to {FORMAT_VERSION}. "
            "Install a newer Sharpwave."
        )


def _unlike(own: RootFile, copy: RootFile) -> str:
    """What tells the copy from what its writer wrote."""
    if copy.checksum != own.checksum:
        return "it is that of another store than steps.zarr/zarr.json"
    attributes = {key: value for key, value in copy.attributes.items() if key != "checksum"}
    if root_document(attributes) != copy.content:
        return "it is not what a writer writes"
    return ""
