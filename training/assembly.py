"""From settings to the objects that a run needs."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lightning
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import Logger

from storage.class_path import load_object
from storage.errors import ConfigError
from training.agents.registry import agent_class
from training.checkpoints.checkpoint_io import AtomicCheckpointIO
from training.checkpoints.first_checkpoint import FirstCheckpoint
from training.environments.atari_vector import atari_vector
from training.environments.environment import make_environment
from training.environments.lane_processes import Undisturbed
from training.environments.lanes import EnvLanes, Lanes
from training.environments.vector_lanes import VectorLanes
from training.metrics import MetricsFile, rounds_between_rows
from training.offline_experience import OfflineExperience
from training.online_experience import OnlineExperience
from training.placement import check_options, check_trainer, device_type
from training.preflight import check_run
from training.progress import RunProgress
from training.quiet import quiet_lightning
from training.retention import DropSegments
from training.run_files import BestCheckpoint, LastCheckpoint, SettingsFile, TensorBoardFiles

if TYPE_CHECKING:
    from storage import EnvironmentSpec
    from training.agent import ReplayAgent
    from training.config import RunConfig
    from training.preflight import CheckedRun

__all__ = ["assemble", "build", "make_agent", "make_lanes", "trainer"]


def build(
    config: RunConfig, run_dir: Path | str | None = None
) -> tuple[ReplayAgent, OnlineExperience | OfflineExperience]:
    """The Lightning module and data module of a run.

    ``lightning.Trainer().fit(module, data)`` trains until ``loop.steps`` environment steps are
    taken, and stops. Torch's number of threads is set to ``loop.threads``, because results depend
    on it.

    Args:
        config: The run's settings.
        run_dir: Where the run's store and files go; ``runs/NAME`` when left out.

    Example:
        >>> config = RunConfig(EnvironmentConfig("InvertedPendulum-v5"))
        >>> module, data = build(config)                                  # doctest: +SKIP
        >>> lightning.Trainer().fit(module, data)                         # doctest: +SKIP

    Raises:
        SharpwaveError: settings that cannot be met; see :func:`training.preflight.check_run`.
    """
    return assemble(check_run(config), run_dir)


def assemble(
    checked: CheckedRun, run_dir: Path | str | None = None
) -> tuple[ReplayAgent, OnlineExperience | OfflineExperience]:
    """What :func:`build` gives, of a run that was checked already."""
    config = checked.config
    quiet_lightning()
    torch.set_num_threads(config.loop.threads)
    folder = run_directory(config, run_dir)
    agent = make_agent(config, checked.spec)
    if config.replay.store is not None:
        return agent, OfflineExperience(config, folder)
    lanes = partial(make_lanes, config)
    return agent, OnlineExperience(config, folder, lanes, checked.recording)


def make_agent(config: RunConfig, spec: EnvironmentSpec) -> ReplayAgent:
    """The agent that ``config.agent`` describes, for an environment's spaces."""
    return agent_class(config.agent.kind)(config, spec)


def make_lanes(config: RunConfig) -> Lanes:
    """The environment lanes that ``config.loop`` asks for."""
    loop = config.loop
    makers = [partial(make_environment, config.environment)] * loop.lanes
    if loop.lane_kind == "serial":
        return EnvLanes(makers)
    if loop.lane_kind == "sync":
        games = atari_vector(config.environment, loop.lanes)
        if games is not None:
            return VectorLanes(games)
        return VectorLanes(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED))
    undisturbed = [Undisturbed(make) for make in makers]
    return VectorLanes(AsyncVectorEnv(undisturbed, autoreset_mode=AutoresetMode.DISABLED))


def run_directory(config: RunConfig, run_dir: Path | str | None) -> Path:
    """The directory of a run: as given, or ``runs/NAME``."""
    return Path("runs", config.name) if run_dir is None else Path(run_dir)


def trainer(
    config: RunConfig, run_dir: Path | str | None = None, **options: Any
) -> lightning.Trainer:
    """A Lightning trainer with the run's loggers, checkpoints and progress bar.

    Checkpoints are ``checkpoints/last.ckpt`` and, with evaluation, ``checkpoints/best.ckpt``. The
    run's directory is first written to when training has begun and its store is held: then
    ``config.yaml`` appears, too.

    Args:
        config: The run's settings.
        run_dir: As in :func:`build`.
        options: More arguments of ``lightning.Trainer``, which win over these.

    Raises:
        ConfigError: a GPU that is not there, several devices, or a strategy for several.
    """
    check_options(options)
    accelerator = device_type(options.get("accelerator", config.loop.accelerator))
    quiet_lightning()
    folder = run_directory(config, run_dir)
    chosen: dict[str, Any] = {
        "max_epochs": -1,
        "max_steps": -1,
        "devices": 1,
        "logger": _loggers(config, folder),
        "callbacks": _callbacks(config, folder),
        "plugins": [AtomicCheckpointIO(config.loop.durability)],
        "default_root_dir": folder,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
    }
    made = lightning.Trainer(**chosen | options | {"accelerator": accelerator})
    check_trainer(made)
    return made


def _loggers(config: RunConfig, folder: Path) -> list[Logger]:
    settings = config.logging
    loggers: list[Logger] = []
    if settings.csv:
        size = config.loop.round_steps
        rows = rounds_between_rows(settings.every_steps, size) * size
        loggers.append(MetricsFile(folder / "metrics.csv", rows))
    if settings.tensorboard:
        _check_folder(folder / "tensorboard")
        loggers.append(TensorBoardFiles(os.fspath(folder), name="tensorboard", version=""))
    return loggers + [_foreign_logger(each) for each in settings.loggers]


def _check_folder(path: Path) -> None:
    if os.path.lexists(path) and not path.is_dir():
        raise ConfigError(
            f"{path} is a file, where the folder of TensorBoard's files belongs; move it away, or "
            "say --logging.tensorboard=false"
        )


def _foreign_logger(described: dict[str, Any]) -> Logger:
    try:
        logger = load_object(described["class_path"])(**described.get("init_args", {}))
    except (KeyError, ModuleNotFoundError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"logging.loggers has {described}, which cannot be made ({error!r}); write "
            "{class_path: package.Logger, init_args: {…}}"
        ) from error
    if not isinstance(logger, Logger):
        raise ConfigError(f"{described['class_path']} is no Lightning logger")
    return logger


def _callbacks(config: RunConfig, folder: Path) -> list[Callback]:
    checkpoints = folder / "checkpoints"
    rounds = max(1, round(config.checkpoint.every_steps / config.loop.round_steps))
    callbacks: list[Callback] = [
        SettingsFile(folder / "config.yaml"),
        FirstCheckpoint(checkpoints),
    ]
    if config.evaluation.episodes:
        # Before the last: who goes on behind an evaluation never asks for its score again.
        callbacks.append(BestCheckpoint(checkpoints))
    callbacks.append(LastCheckpoint(checkpoints, rounds))
    if config.replay.retention == "drop":
        callbacks.append(DropSegments(checkpoints))
    if config.logging.progress:
        callbacks.append(RunProgress())
    return callbacks
