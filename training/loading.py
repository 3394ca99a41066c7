"""Loads agents from checkpoints, to act."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from storage import EnvironmentSpec
from storage.errors import CheckpointError, ConfigError
from training.agents.registry import refuse_unknown_code
from training.assembly import make_agent
from training.checkpoints.checkpoint import best_checkpoint
from training.checkpoints.checkpoint_file import AGENT_KEY, read_checkpoint
from training.config import RunConfig
from training.config_file import from_mapping

if TYPE_CHECKING:
    from collections.abc import Container

    from training.agent import ReplayAgent

__all__ = ["load"]


def load(path: Path | str, trust: Container[str] = ()) -> ReplayAgent:
    """The agent in a checkpoint file, or the best one of a run directory, ready to act.

    Warns where the run has written no checkpoint since its first update.

    Args:
        path: A checkpoint, or a run directory.
        trust: Class paths of agents of your own that may be imported; those whose module is
            imported already need not be named.

    Example:
        >>> agent = training.load("runs/hopper")              # doctest: +SKIP
        >>> action = agent.act(observation)                   # doctest: +SKIP

    Raises:
        CheckpointError: no checkpoint there, or one that cannot be read.
        ConfigError: it names an agent by a class path that nobody has vouched for.
    """
    is_run = Path(path).is_dir()
    path = best_checkpoint(path) if is_run else Path(path)
    content = read_checkpoint(path)
    kept = content[AGENT_KEY]
    refuse_unknown_code(kept["config"]["agent"]["kind"], str(path), trust)
    try:
        config = from_mapping(RunConfig, kept["config"])
        spec = EnvironmentSpec.from_json(kept["environment"])
    except (ConfigError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} holds settings that no run has: {error}") from error
    agent = make_agent(config, spec)
    agent.restore(content, str(path))
    if is_run and not agent.counters.updates:
        warnings.warn(
            f"{path} was written before the first update: it acts at random", stacklevel=2
        )
    return agent
