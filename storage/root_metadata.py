"""What is fixed about a store: ``steps.zarr/zarr.json``, and its copy ``log/store.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storage.atomic import write_atomic
from storage.checksum import crc32c
from storage.containment import read_regular, require_folders
from storage.description import LARGEST_METADATA, read_metadata
from storage.errors import (
    CorruptStoreError,
    FormatVersionError,
    StoreNotFoundError,
    UnsupportedSpaceError,
)
from storage.layout import FORMAT_VERSION, StorePaths, segment_id
from storage.zarr_metadata import encode, group_document

__all__ = ["attributes_checksum", "keep_copy", "read_root", "root_document", "write_root"]

_KINDS = {"store_uuid": str, "environment": dict, "schema": dict}
_OWN = ("format_version", "store_uuid", "behaviour_family", "environment", "schema")
"""What the checksum is taken over; anybody may add attributes of their own."""


def attributes_checksum(attributes: Mapping[str, Any]) -> int:
    """CRC32C of a store's own attributes as JSON with sorted keys and no spaces."""
    own = {key: attributes[key] for key in _OWN if key in attributes}
    return crc32c(json.dumps(own, sort_keys=True, separators=(",", ":")).encode())


def root_document(attributes: Mapping[str, Any]) -> bytes:
    """The bytes of both files for a store of these attributes."""
    checksum = attributes_checksum(attributes)
    return encode(group_document({**attributes, "checksum": checksum}))


def write_root(paths: StorePaths, attributes: Mapping[str, Any]) -> None:
    """Write the copy, and last the file that makes a store of its folder.

    Raises UnsupportedSpaceError for spaces whose description is too long to be read again.
    """
    document = root_document(attributes)
    if len(document) > LARGEST_METADATA:
        raise UnsupportedSpaceError(
            f"the spaces of this environment take {len(document):,} bytes to describe, more than "
            f"the {LARGEST_METADATA:,} that are read: give bounds that are the same everywhere"
        )
    write_atomic(paths.description, document, paths.staging, sync=True)
    write_atomic(paths.steps / "zarr.json", document, paths.staging, sync=True)


def keep_copy(paths: StorePaths) -> None:
    """Copy the root metadata, which was found good, where its copy was lost."""
    if not paths.description.exists():
        write_atomic(paths.description, read_regular(paths.steps / "zarr.json"), paths.staging)


def read_root(paths: StorePaths) -> dict[str, Any]:
    """A store's attributes.

    Raises StoreNotFoundError, FormatVersionError, or CorruptStoreError where they are not as they
    were written.
    """
    require_folders(paths)
    metadata = paths.steps / "zarr.json"
    try:
        attributes = read_metadata(metadata)["attributes"]
        version = attributes["format_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise _not_found(paths, metadata) from None
    except OSError as error:
        raise not_a_store(metadata, f"it cannot be read ({error.strerror})") from error
    except (ValueError, LookupError, TypeError):
        why = "it is not JSON with attributes and a format_version"
        raise not_a_store(metadata, why) from None
    _check_version(metadata, version)
    missing = [key for key, kind in _KINDS.items() if not isinstance(attributes.get(key), kind)]
    if missing:
        raise not_a_store(metadata, f"its attributes lack {', '.join(missing)}")
    if not attributes["store_uuid"].isprintable() or len(attributes["store_uuid"]) > 100:
        raise not_a_store(metadata, "its store_uuid is no name")
    checksum = attributes.get("checksum", attributes_checksum(attributes))
    if checksum != attributes_checksum(attributes):
        raise not_a_store(metadata, "its attributes fail their checksum")
    _check_log(paths)
    return dict(attributes)


def not_a_store(metadata: Path, why: str) -> CorruptStoreError:
    """The error for root metadata that cannot be used."""
    return CorruptStoreError(
        f"{metadata} does not describe a Sharpwave store: {why}. `sharpwave repair` puts its copy, "
        "log/store.json, in its place; where that is gone as well, restore it from a copy"
    )


def _not_found(paths: StorePaths, metadata: Path) -> StoreNotFoundError:
    if paths.description.is_file():
        return StoreNotFoundError(
            f"{metadata} is missing, but {paths.description} is a copy of it: `sharpwave repair "
            f"{paths.root}` puts it back"
        )
    return StoreNotFoundError(
        f"{paths.root} is no Sharpwave store: there is no {metadata}. Give the folder that holds "
        "steps.zarr and log, or make a store with storage.create."
    )


def _check_version(metadata: Path, version: Any) -> None:
    if type(version) is not int or version < 1:
        raise FormatVersionError(
            f"{metadata} gives the format version as {version!r}, which is no version; this "
            f"release reads 1 to {FORMAT_VERSION}. Restore the file from a copy."
        )
    if version < FORMAT_VERSION:
        root = metadata.parent.parent
        raise FormatVersionError(
            f"{root} is of format version {version}, this release reads {FORMAT_VERSION}: "
            f"`sharpwave migrate {root}` brings it up to date and keeps what is there, or says why "
            "it cannot"
        )
    if version > FORMAT_VERSION:
        raise FormatVersionError(
            f"{metadata} is of format version {version}; this release reads up to "
            f"{FORMAT_VERSION}. Install a newer Sharpwave."
        )


def _check_log(paths: StorePaths) -> None:
    segments = (segment_id(folder.name) for folder in paths.steps.iterdir())
    if not paths.logs.is_dir() and any(segment is not None for segment in segments):
        raise CorruptStoreError(
            f"{paths.root} has no folder log, without which nobody knows which rows count; restore "
            "it from a copy"
        )
