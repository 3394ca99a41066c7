"""What a run keeps besides its store: settings, checkpoints and TensorBoard's files."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import TensorBoardLogger

from storage.errors import CheckpointError
from training.checkpoints.checkpoint_file import read_checkpoint
from training.checkpoints.checkpoint_io import sync_folder
from training.config_file import save_config
from training.evaluation import EVALUATION_METRIC
from training.setting_aside import set_aside

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lightning

__all__ = ["BestCheckpoint", "LastCheckpoint", "SettingsFile", "TensorBoardFiles"]

_SCORE = "score"


class SettingsFile(Callback):
    """Writes the agent's settings once its store is held, so that a refused start changes nothing.

    Args:
        path: The file, ``config.yaml`` in the run's directory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_run_open(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Writes the file; the agent has opened the experience."""
        save_config(pl_module.config, self._path)
        if pl_module.config.loop.durability == "fsync":
            sync_folder(self._path.parent)
            sync_folder(self._path.absolute().parent.parent)


class TensorBoardFiles(TensorBoardLogger):
    """TensorBoard's logger, which makes its file when the first numbers come.

    Lightning asks every logger for its file before training begins, which may be refused yet.
    """

    _began = False

    @property
    def experiment(self) -> Any:
        """TensorBoard's writer.

        Raises:
            AttributeError: no numbers were logged yet; Lightning takes that for none.
        """
        if not self._began:
            raise AttributeError("the file of TensorBoard is made by the first log_metrics")
        return super().experiment

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Adds numbers at ``step`` environment steps."""
        self._began = True
        super().log_metrics(dict(metrics), step)

    def save(self) -> None:
        """Flushes what was logged."""
        if self._began:
            super().save()


class LastCheckpoint(ModelCheckpoint):
    """Replaces ``last.ckpt`` every few rounds and when training ends.

    It has no state of its own that a moved run would lose.

    Args:
        folder: The folder of the run's checkpoints.
        rounds: Rounds between two checkpoints.
    """

    def __init__(self, folder: Path, rounds: int) -> None:
        super().__init__(folder, "last", every_n_train_steps=rounds, enable_version_counter=False)

    def on_train_start(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """What a run goes on from need not be written again."""
        super().on_train_start(trainer, pl_module)
        self._last_global_step_saved = trainer.global_step

    def on_exception(
        self, trainer: lightning.Trainer, pl_module: Any, exception: BaseException
    ) -> None:
        """Says how to go on after a Ctrl-C, unless the program has words of its own.

        Nothing is saved: in the middle of a round the state is not whole.
        """
        super().on_exception(trainer, pl_module, exception)
        worded = any(
            getattr(each, "words_interrupts", False) for each in cast("Any", trainer).callbacks
        )
        last = Path(self.dirpath or "") / "last.ckpt"
        if isinstance(exception, KeyboardInterrupt) and not worded and last.is_file():
            told = f"trainer.fit(module, data, ckpt_path={os.fspath(last)!r}, weights_only=True)"
            print(
                f"sharpwave: interrupted; go on from the last checkpoint by {told}", file=sys.stderr
            )

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Saves the end, also where the run was asked to stop after a round."""
        if not self._should_skip_saving_checkpoint(trainer):
            self._save_topk_checkpoint(trainer, self._monitor_candidates(trainer))

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes nothing back."""


class BestCheckpoint(ModelCheckpoint):
    """Replaces ``best.ckpt`` by the policy of a better evaluation; asked after every round.

    The score to beat is kept in ``best.ckpt`` itself and read from there when training begins. So
    it holds wherever the run was moved to, and whichever checkpoint the run goes on from.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder,
            "best",
            monitor=EVALUATION_METRIC,
            mode="max",
            every_n_train_steps=1,
            enable_version_counter=False,
        )
        self._path = os.fspath(Path(self.dirpath or folder) / "best.ckpt")
        self._damage: str | None = None

    def on_train_start(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Takes up the score of the file that is there."""
        super().on_train_start(trainer, pl_module)
        score = self._kept_score()
        if score is not None:
            self.best_model_score = self.kth_value = score
            self.best_model_path = self.kth_best_model_path = self._path
            self.best_k_models = {self._path: score}

    def on_run_open(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Sets a damaged file aside, which may hold a better policy; the store is held by now."""
        if self._damage is not None:
            aside = set_aside(Path(self._path))
            warnings.warn(
                f"{self._damage.partition('; use')[0].partition(': use')[0]}: it is kept as "
                f"{aside.name}, and the best policy from here on becomes best.ckpt",
                stacklevel=2,
            )
            self._damage = None

    def state_dict(self) -> dict[str, Any]:
        """The best score, as a tensor; its file is beside the one that this goes into."""
        return {} if self.best_model_score is None else {_SCORE: self.best_model_score}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes nothing back: ``best.ckpt`` knows better."""

    def _kept_score(self) -> torch.Tensor | None:
        """The score in the file; None where it is missing, damaged or of another kind."""
        if not os.path.lexists(self._path):
            return None
        try:
            content = read_checkpoint(self._path)
        except CheckpointError as error:
            self._damage = str(error)
            return None
        state = content.get("callbacks", {}).get(self.state_key, {})
        score = state.get(_SCORE)
        return score if isinstance(score, torch.Tensor) else None
