"""How checkpoint files reach the disk, and come back."""

from __future__ import annotations

import io
import itertools
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from lightning.fabric.plugins.io import TorchCheckpointIO

from storage.atomic import disk_full_as_error
from training.checkpoints.checkpoint_file import read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightning.fabric.utilities.types import _PATH

__all__ = ["AtomicCheckpointIO", "remove_leftovers", "sync_folder"]

_LAST: Final = "last.ckpt"
_PREVIOUS: Final = "previous.ckpt"
_LEFTOVER: Final = re.compile(r".+\.ckpt\.\d+\.\d+")
_serial = itertools.count()


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the file and renames into place, so that a killed save leaves the old one.

    Whatever ``last.ckpt`` was replaced by a new one stays as ``previous.ckpt``; at every instant
    both are there and whole. Lightning's own writer goes through the system's temporary directory,
    which is often on another file system; from there nothing can be renamed into place.

    Args:
        durability: "fsync" has a checkpoint on the disk before its name points to it, so that it
            survives a power cut.
    """

    def __init__(self, durability: Literal["process", "fsync"] = "process") -> None:
        super().__init__()
        self._synced = durability == "fsync"

    def save_checkpoint(
        self,
        checkpoint: dict[str, Any],
        path: _PATH,
        storage_options: Any | None = None,  # noqa: ARG002
    ) -> None:
        """Saves ``checkpoint`` at ``path``.

        Raises:
            DiskFullError: there is no room; the file at ``path`` is as it was.
        """
        target = Path(path)
        fresh = not target.parent.is_dir()
        target.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        torch.save(checkpoint, content)
        written = _temporary(target)
        try:
            with disk_full_as_error(target, content.tell()):
                self._write(written, content.getbuffer())
                if target.name == _LAST:
                    _keep_previous(target)
                written.replace(target)
        finally:
            written.unlink(missing_ok=True)
        if self._synced:
            _sync_metrics(target.absolute().parent.parent / "metrics.csv")
            sync_folder(target.parent)
            if fresh:
                sync_folder(target.absolute().parent.parent)

    def load_checkpoint(
        self,
        path: _PATH,
        map_location: Callable[..., Any] | None = None,  # noqa: ARG002
        weights_only: bool | None = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Reads the checkpoint at ``path`` onto the host; tensors and plain values only, always.

        Raises:
            CheckpointError: as :func:`training.checkpoints.checkpoint_file.read_checkpoint`.
        """
        return read_checkpoint(path)

    def _write(self, path: Path, data: memoryview) -> None:
        with path.open("xb") as file:
            file.write(data)
            if self._synced:
                file.flush()
                os.fsync(file.fileno())


def remove_leftovers(folder: Path) -> None:
    """Removes what killed saves left in a folder of checkpoints; nobody may be saving there."""
    if folder.is_dir():
        for path in folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                path.unlink(missing_ok=True)


def _temporary(target: Path) -> Path:
    return target.with_name(f"{target.name}.{os.getpid()}.{next(_serial)}")


def _keep_previous(last: Path) -> None:
    """Gives the file at ``last`` a second name, which stays when a new one takes the first.

    A rename of ``last.ckpt`` itself would leave an instant without it.
    """
    if not last.is_file():
        return
    linked = _temporary(last.with_name(_PREVIOUS))
    try:
        try:
            os.link(last, linked)
        except OSError:  # a file system without second names
            shutil.copyfile(last, linked)
        # Does nothing where both are the same file, as after a kill right behind this line.
        linked.replace(last.with_name(_PREVIOUS))
    finally:
        linked.unlink(missing_ok=True)


def _sync_metrics(path: Path) -> None:
    """Has the device hold the rows up to the checkpoint, from which a resumed run goes on."""
    if path.is_file():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Has the device know the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
