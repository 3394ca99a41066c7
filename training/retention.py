"""Drops segments that left the window, once no kept checkpoint names them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lightning.pytorch.callbacks import Callback

from storage.errors import CheckpointError
from storage.retention import drop, droppable
from training.checkpoints.checkpoint import named_segments

if TYPE_CHECKING:
    from pathlib import Path

    import lightning

    from training.online_experience import OnlineExperience

__all__ = ["DropSegments"]

_logger = logging.getLogger(__name__)

_Stamp = tuple[int, int, int]


class DropSegments(Callback):
    """Has a run's store hold what its window and its checkpoints need, and no more.

    At each round's end the writer leaves segments that the window has left out of its position,
    so that the next checkpoint no longer names them. After a checkpoint is in place, and when
    training begins, segments go that no file in ``folder`` names.

    Args:
        folder: The folder of the run's checkpoints, all of which are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._named: dict[Path, tuple[_Stamp, set[int]]] = {}
        self._dropped_at: _Stamp | None = None

    def on_run_open(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Drops what a run that was killed had left; the experience is open by now."""
        self._drop(_experience(trainer))

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Drops, where a checkpoint was written since; it is asked before the next one is."""
        experience = _experience(trainer)
        if _stamp(self._folder / "last.ckpt") != self._dropped_at:
            self._drop(experience)
        experience.retire()

    def on_train_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Drops after the last checkpoint."""
        self._drop(_experience(trainer))

    def _drop(self, experience: OnlineExperience) -> None:
        self._dropped_at = _stamp(self._folder / "last.ckpt")
        if self._dropped_at is None:
            return  # without a checkpoint nobody knows what the next one will name
        pinned = self._pinned()
        if pinned is None:
            return
        store, run = experience.store, experience.config.name
        store.refresh()
        drop(store, droppable(store, experience.view.needed_segments(), pinned, run))

    def _pinned(self) -> set[int] | None:
        """What the checkpoints name; None where one of them cannot be read."""
        pinned: set[int] = set()
        for file in sorted(self._folder.glob("*.ckpt")):
            stamp = _stamp(file)
            if stamp is None:
                continue
            if self._named.get(file, (None, set()))[0] != stamp:
                try:
                    self._named[file] = stamp, named_segments(file)
                except CheckpointError as error:
                    _logger.warning("no segment is dropped: %s", error)
                    return None
            pinned |= self._named[file][1]
        return pinned


def _experience(trainer: lightning.Trainer) -> OnlineExperience:
    experience: OnlineExperience = trainer.datamodule  # type: ignore[attr-defined]
    return experience


def _stamp(file: Path) -> _Stamp | None:
    """What changes when a file is replaced; None without one."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
