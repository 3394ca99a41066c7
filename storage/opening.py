"""The two ways to a store: make a new one, or open what is there."""

from __future__ import annotations

import json
import logging
import os
import shutil
import uuid as uuids
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage.atomic import disk_full_as_error, write_atomic
from storage.environment_spec import EnvironmentSpec
from storage.errors import (
    ConfigError,
    CorruptStoreError,
    FormatVersionError,
    ReadOnlyStoreError,
    SharpwaveError,
    StoreExistsError,
    StoreNotFoundError,
)
from storage.layout import FORMAT_VERSION, StorePaths, segment_id
from storage.schema import Schema, StackPadding, check_names, make_schema
from storage.store import Mode, Store
from storage.zarr_metadata import encode, group_document

__all__ = ["create", "open"]

_logger = logging.getLogger(__name__)


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
    (dtype, shape); ``life_loss`` adds the ``life_lost`` column.

    ``frame_stack`` says that the environment's observations are stacks of that many frames, oldest
    first on the first axis of every part: rows then hold the newest frame alone, and episodes and
    batches show whole stacks again. ``first_stack_padding`` is what stands before an episode's
    first frame: "zero" (ALE's vector environments) or "repeat" (gymnasium's FrameStackObservation).

    Raises StoreExistsError when something is there, UnsupportedSpaceError naming a space that has
    no column layout, ConfigError for settings that cannot be.
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
    check_names(schema)
    root = _place(path)
    with _making(root):
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise StoreExistsError(
                f"cannot create a store at {root}: something is there. Open it with "
                "storage.open(path, mode='r+'), or choose another path."
            )
        _build(root, schema, env_spec)
    return open(root, mode="r+")


def _build(root: Path, schema: Schema, env_spec: EnvironmentSpec) -> None:
    """Make the store beside the path and rename it into place at once."""
    attributes = {
        "format_version": FORMAT_VERSION,
        "store_uuid": str(uuids.uuid4()),
        "behaviour_family": schema.behaviour_family,
        "environment": env_spec.to_json(),
        "schema": schema.to_json(),
    }
    metadata = encode(group_document(attributes))
    if os.path.ismount(root):  # a folder that nothing can be renamed over
        _fill(root, metadata)
        return
    staged = root.with_name(f".{root.name}.{os.getpid()}.creating")
    try:
        staged.mkdir(parents=True)
        _fill(staged, metadata)
        staged.rename(root)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _fill(root: Path, metadata: bytes) -> None:
    """Make the folders, and last the file that makes a store of them."""
    paths = StorePaths(root)
    try:
        for folder in paths.folders():
            folder.mkdir()
        write_atomic(paths.steps / "zarr.json", metadata, paths.staging)
    except BaseException:
        for folder in paths.folders():
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _place(path: str | os.PathLike[str]) -> Path:
    root = Path(path).absolute()
    if not os.fspath(path) or root.resolve() == Path.cwd():
        raise ConfigError(
            f"a store needs a folder of its own, not {os.fspath(path)!r}, the current one; give a "
            "path such as runs/store"
        )
    return root


@contextmanager
def _making(root: Path) -> Iterator[None]:
    """Turn what the file system says into one clear error that names the path."""
    try:
        with disk_full_as_error(root, 0):
            yield
    except SharpwaveError:
        raise
    except NotADirectoryError as error:
        raise ConfigError(
            f"cannot create a store at {root}: a part of this path is a file; choose another path"
        ) from error
    except OSError as error:
        raise ReadOnlyStoreError(
            f"cannot create a store at {root}: {error.strerror}. Choose a path on a file system "
            "where this user may write."
        ) from error


def open(path: str | os.PathLike[str], mode: Mode = "r") -> Store:  # noqa: A001
    """Open the store at ``path``; mode "r" never changes a byte, "r+" may write.

    What the store lacks is logged as a warning; see ``Store.problems``. Raises StoreNotFoundError,
    FormatVersionError, CorruptStoreError, or ReadOnlyStoreError where "r+" cannot write.
    """
    if mode not in ("r", "r+"):
        raise ConfigError(f"mode {mode!r}: choose 'r' (read) or 'r+' (read and write)")
    root = Path(path).absolute()
    attributes = _attributes(root)
    if mode == "r+":
        _make_writable(StorePaths(root))
    try:
        store = Store(root, mode, attributes)
    except SharpwaveError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise _not_a_store(root, f"its schema or environment is broken ({error!r})") from error
    for problem in store.problems():
        _logger.warning("%s", problem)
    return store


def _make_writable(paths: StorePaths) -> None:
    """Bring back empty folders, which git and object stores drop, and see whether one may write."""
    try:
        for folder in paths.folders():
            folder.mkdir(exist_ok=True)
        denied = [folder for folder in paths.folders() if not os.access(folder, os.W_OK)]
        reason = "this user may not write there"
        if os.statvfs(paths.root).f_flag & os.ST_RDONLY:
            denied, reason = [paths.root], "its file system is read-only"
    except OSError as error:
        denied, reason = [paths.root], str(error.strerror)
    if denied:
        raise ReadOnlyStoreError(
            f"cannot open {paths.root} for writing ({denied[0]}: {reason}). Read it with mode='r', "
            "or copy it to where it can be written."
        )


def _not_a_store(root: Path, why: str) -> CorruptStoreError:
    metadata = StorePaths(root).steps / "zarr.json"
    return CorruptStoreError(
        f"{metadata} does not describe a Sharpwave store: {why}. Restore it from a copy; where "
        "there is none, that of another store of the same environment and settings tells what it "
        "must look like (store_uuid is the one that the files in log name)."
    )


def _attributes(root: Path) -> dict[str, Any]:
    paths = StorePaths(root)
    metadata = paths.steps / "zarr.json"
    try:
        attributes = json.loads(metadata.read_text())["attributes"]
        version = attributes["format_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise StoreNotFoundError(
            f"{root} is no Sharpwave store: there is no {metadata}. Give the folder that holds "
            "steps.zarr and log, or make a store with storage.create."
        ) from None
    except OSError as error:
        raise _not_a_store(root, f"it cannot be read ({error.strerror})") from error
    except (ValueError, LookupError, TypeError):
        raise _not_a_store(root, "it is not JSON with attributes and a format_version") from None
    if type(version) is not int or version < 1:
        raise FormatVersionError(
            f"{metadata} gives the format version as {version!r}, which is no version; this "
            f"release reads 1 to {FORMAT_VERSION}. Restore the file from a copy."
        )
    if version > FORMAT_VERSION:
        raise FormatVersionError(
            f"{root} is of format version {version}; this release reads up to {FORMAT_VERSION}. "
            "Install a newer Sharpwave."
        )
    kinds = {"store_uuid": str, "environment": dict, "schema": dict}
    missing = [key for key, kind in kinds.items() if not isinstance(attributes.get(key), kind)]
    if missing:
        raise _not_a_store(root, f"its attributes lack {', '.join(missing)}")
    if not paths.logs.is_dir() and any(
        segment_id(f.name) is not None for f in paths.steps.iterdir()
    ):
        raise CorruptStoreError(
            f"{root} has no folder log, without which nobody knows which rows count; restore it "
            "from a copy"
        )
    return dict(attributes)
