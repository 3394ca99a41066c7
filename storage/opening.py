"""The two ways to a store: make a new one, or open what is there."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import uuid as uuids
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage.atomic import disk_full_as_error
from storage.environment_spec import EnvironmentSpec
from storage.errors import (
    ConfigError,
    ReadOnlyStoreError,
    SharpwaveError,
    StoreExistsError,
)
from storage.layout import FORMAT_VERSION, StorePaths
from storage.root_metadata import keep_copy, read_root, write_root
from storage.schema import Schema, StackPadding, check_names, make_schema
from storage.store import Mode, Store

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
            raise _exists(root)
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
    if os.path.ismount(root):  # a folder that nothing can be renamed over
        _fill(root, attributes)
        return
    staged = root.with_name(f".{root.name}.{os.getpid()}.creating")
    try:
        staged.mkdir(parents=True)
        _fill(staged, attributes)
        _rename(staged, root)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _rename(staged: Path, root: Path) -> None:
    """Put a store in its place; StoreExistsError where another process was quicker."""
    try:
        staged.rename(root)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise _exists(root) from error
        raise


def _exists(root: Path) -> StoreExistsError:
    return StoreExistsError(
        f"cannot create a store at {root}: something is there. Open it with storage.open(path, "
        "mode='r+'), or choose another path."
    )


def _fill(root: Path, attributes: Mapping[str, Any]) -> None:
    """Make the folders, and last the file that makes a store of them."""
    paths = StorePaths(root)
    try:
        for folder in paths.folders():
            folder.mkdir()
        write_root(paths, attributes)
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
    attributes = read_root(StorePaths(root))
    if mode == "r+":
        _make_writable(StorePaths(root))
        keep_copy(StorePaths(root))
    store = Store(root, mode, attributes)
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
