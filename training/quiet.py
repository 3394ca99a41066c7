"""Keeps library noise away from the terminal and the working directory.

Only messages that a user of Sharpwave cannot act on are dropped, each by its own pattern; every
other warning passes.
"""

from __future__ import annotations

import logging
import sys
import warnings

__all__ = ["quiet_lightning", "quiet_mujoco", "quiet_workers"]

_log = logging.getLogger("sharpwave.mujoco")

_LIGHTNING_WARNINGS = (
    r".*does not have many workers which may be a bottleneck.*",
    r".*Using ModelCheckpoint with manual optimization and every_n_train_steps.*",
    r".*Checkpoint directory .* exists and is not empty.*",
    r".*Your `IterableDataset` has `__len__` defined.*",
    r".*You defined a `validation_step` but have no `val_dataloader`.*",
    r".*`training_step` returned `None`.*",
    r".*is an instance of `nn\.Module` and is already saved during checkpointing.*",
    r".*Starting from v1\.9\.0, `tensorboardX` has been removed.*",
    r".*The loaded checkpoint was produced with Lightning.*",
    r".*GPU available but not used.*",
    r".*srun.*command is available on your system but is not used.*",
    r".*isinstance\(treespec, LeafSpec\).*",
    r".*`max_epochs` was not set.*",
    r".*callbacks used to create the checkpoint need to be provided.*",
)

_LIGHTNING_INFOS = (
    "GPU available:",
    "TPU available:",
    "HPU available:",
    "💡 Tip:",
    "Restoring states from the checkpoint path",
    "Restored all states from the checkpoint",
    "`Trainer.fit` stopped:",
    "Trainer already configured with model summary callbacks",
    "You are using the plain ModelCheckpoint callback",
    "Loading `train_dataloader` to estimate",
    "Detected KeyboardInterrupt, attempting graceful shutdown",
    "[rank: 0] Received SIGTERM",
)


_LIGHTNING_LOGGERS = (
    "lightning.pytorch.utilities.rank_zero",
    "lightning.fabric.utilities.rank_zero",
    "lightning.pytorch.trainer.connectors.signal_connector",
)


class _DropInfos(logging.Filter):
    """Drops the fixed start-up lines of Lightning and lets everything else pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage().lstrip()
        return not message.startswith(_LIGHTNING_INFOS)


_DROP_INFOS = _DropInfos()


def quiet_lightning() -> None:
    """Drops Lightning's hints about loaders, accelerators and manual optimization."""
    for pattern in _LIGHTNING_WARNINGS:
        warnings.filterwarnings("ignore", message=pattern)
    for name in _LIGHTNING_LOGGERS:
        logger = logging.getLogger(name)
        if _DROP_INFOS not in logger.filters:
            logger.addFilter(_DROP_INFOS)


def quiet_workers() -> None:
    """Drops what gymnasium says, in colours, of a lane's error, which is raised anyway."""
    warnings.filterwarnings("ignore", message=r"(?s).*ERROR: (Received the following error from )")
    warnings.filterwarnings("ignore", message=r"(?s).*ERROR: (Traceback|Raising the last exc)")


def quiet_mujoco() -> None:
    """Sends MuJoCo's warnings to the logger ``sharpwave.mujoco`` (level debug).

    Without a hook MuJoCo prints them and appends to MUJOCO_LOG.TXT in the working directory. Does
    nothing while mujoco is not imported, and keeps a hook that somebody else installed.
    """
    mujoco = sys.modules.get("mujoco")
    if mujoco is None or mujoco.get_mju_user_warning() is not None:
        return
    mujoco.set_mju_user_warning(_forward_mujoco)


def _forward_mujoco(message: str) -> None:
    _log.debug("%s", message)
