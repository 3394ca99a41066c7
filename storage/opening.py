"""The two ways to a store: make a new one, or open what is there."""

from __future__ import annotations

import json
import os
import shutil
import uuid as uuids
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storage.atomic import disk_full_as_error
from storage.environment_spec import EnvironmentSpec
from storage.errors import (
    ConfigError,
    CorruptStoreError,
    FormatVersionError,
    StoreExistsError,
    StoreNotFoundError,
)
from storage.layout import FORMAT_VERSION, StorePaths
from storage.schema import Schema, StackPadding, make_schema
from storage.store import Mode, Store
from storage.zarr_metadata import encode, group_document

__all__ = ["create", "open"]


def create(
    path: str | os.PathLike[str],
    env_spec: EnvironmentSpec,
    *,
    behaviour: str | None = None,
    info: Mapping[str, Any] | None = None,
    frame_stack: int | None = None,
    first_stack_padding: StackPadding | None = None,
    life_loss: bool = False,
) -> Store:
    """Make a new, empty store at ``path`` and open it for writing.

    ``behaviour`` is the family of the policies' distributions ("gaussian", "categorical",
    "unknown"; default by the action space); ``info`` maps info keys that are kept to a dtype or
    (dtype, shape); ``life_loss`` adds the ``life_lost`` column. Raises StoreExistsError when
    something is there, UnsupportedSpaceError naming a space that has no column layout.
    """
    schema = make_schema(
        env_spec.observation_space,
        env_spec.action_space,
        behaviour=behaviour,
        info=info,
        frame_stack=frame_stack,
        first_stack_padding=first_stack_padding,
        life_loss=life_loss,
    )
    root = Path(path).absolute()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise StoreExistsError(
            f"cannot create a store at {root}: something is there. Open it with "
            "storage.open(path, mode='r+'), or choose another path."
        )
    _build(root, schema, env_spec)
    return open(root, mode="r+")


def _build(root: Path, schema: Schema, env_spec: EnvironmentSpec) -> None:
    """Make the folders beside the path and rename them into place at once."""
    attributes = {
        "format_version": FORMAT_VERSION,
        "store_uuid": str(uuids.uuid4()),
        "behaviour_family": schema.behaviour_family,
        "environment": env_spec.to_json(),
        "schema": schema.to_json(),
    }
    staged = root.with_name(f".{root.name}.{os.getpid()}.creating")
    with disk_full_as_error(root, 0):
        try:
            staged.mkdir(parents=True)
            paths = StorePaths(staged)
            for folder in paths.folders():
                folder.mkdir()
            (paths.steps / "zarr.json").write_bytes(encode(group_document(attributes)))
            staged.rename(root)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise


def open(path: str | os.PathLike[str], mode: Mode = "r") -> Store:  # noqa: A001
    """Open the store at ``path``; mode "r" never changes a byte, "r+" may write.

    Raises StoreNotFoundError, FormatVersionError, CorruptStoreError.
    """
    if mode not in ("r", "r+"):
        raise ConfigError(f"mode {mode!r}: choose 'r' (read) or 'r+' (read and write)")
    root = Path(path).absolute()
    return Store(root, mode, _attributes(root))


def _attributes(root: Path) -> dict[str, Any]:
    metadata = StorePaths(root).steps / "zarr.json"
    try:
        attributes = json.loads(metadata.read_text())["attributes"]
        version = attributes["format_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise StoreNotFoundError(
            f"{root} is no Sharpwave store: there is no {metadata}. Give the folder that holds "
            "steps.zarr and log, or make a store with storage.create."
        ) from None
    except (ValueError, KeyError, TypeError):
        raise CorruptStoreError(
            f"{metadata} does not describe a Sharpwave store; restore it from a copy"
        ) from None
    if not StorePaths(root).logs.is_dir():
        raise CorruptStoreError(
            f"{root} has no folder log, without which nobody knows which rows count; restore it "
            "from a copy"
        )
    if version > FORMAT_VERSION:
        raise FormatVersionError(
            f"{root} is of format version {version}; this release reads up to {FORMAT_VERSION}. "
            "Install a newer Sharpwave."
        )
    return dict(attributes)
