"""The checkpoint before the first round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightning.pytorch.callbacks import Callback

from training.checkpoints.checkpoint_io import remove_leftovers

if TYPE_CHECKING:
    from pathlib import Path

    import lightning

__all__ = ["FirstCheckpoint"]


class FirstCheckpoint(Callback):
    """Writes ``last.ckpt`` before a new run's first round, so that it can always be resumed.

    What killed saves of earlier sittings left beside it is removed.

    Args:
        folder: The folder of the run's checkpoints.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "last.ckpt"

    def on_run_open(self, *_: Any) -> None:
        """Removes leftovers; the store is held, so nobody is saving."""
        remove_leftovers(self._path.parent)

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Saves, unless the run goes on from a checkpoint; the experience is open by now."""
        if trainer.ckpt_path is None:
            trainer.save_checkpoint(self._path, weights_only=False)
