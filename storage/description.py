"""The description of a store: the metadata at its root, read without trusting it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storage.containment import open_regular, require_regular
from storage.environment_spec import EnvironmentSpec
from storage.errors import (
    ConfigError,
    CorruptStoreError,
    SchemaMismatchError,
    UnsupportedSpaceError,
)
from storage.schema import Schema

__all__ = ["LARGEST_METADATA", "read_description", "read_metadata"]

LARGEST_METADATA = 32 * 2**20
"""Bytes of the largest metadata file that is read."""


def read_metadata(path: Path) -> Any:
    """The JSON value of a metadata file.

    Raises FileNotFoundError when there is none, CorruptStoreError for what is no regular file, is
    too large, or is no JSON.
    """
    status = require_regular(path)
    if status is not None and status.st_size > LARGEST_METADATA:
        raise CorruptStoreError(
            f"{path} has {status.st_size:,} bytes; metadata of more than {LARGEST_METADATA:,} is "
            "not read. Restore it from a copy"
        )
    with open(path, "rb", opener=open_regular) as file:
        data = file.read(LARGEST_METADATA + 1)
    try:
        return json.loads(data[:LARGEST_METADATA].decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise CorruptStoreError(
            f"{path} is not JSON ({type(error).__name__}: {str(error)[:100]}); restore it from a "
            "copy"
        ) from None


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def read_description(attributes: Mapping[str, Any], source: Path) -> tuple[EnvironmentSpec, Schema]:
    """Environment and schema of a store, from the attributes at its root.

    ``source`` is the file that they come from, for errors: CorruptStoreError.
    """
    try:
        spec = EnvironmentSpec.from_json(attributes["environment"])
        spaces = spec.observation_space, spec.action_space
        return spec, Schema.from_json(attributes["schema"], *spaces)
    except (CorruptStoreError, ConfigError, SchemaMismatchError, UnsupportedSpaceError) as error:
        raise CorruptStoreError(
            f"{source} does not describe a Sharpwave store: {error}. Restore it from a copy"
        ) from error
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CorruptStoreError(
            f"{source} does not describe a Sharpwave store: its schema or environment is broken "
            f"({str(error)[:200]!r}). Restore it from a copy"
        ) from error
