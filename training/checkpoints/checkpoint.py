"""Finds, reads and loads checkpoints: tensors and Python scalars only."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage import EnvironmentSpec
from storage.errors import CheckpointError, ConfigError
from training.checkpoints.checkpoint_file import (
    AGENT_KEY,
    CHECKPOINTS,
    other_checkpoint,
    read_checkpoint,
)
from training.config import RunConfig
from training.config_file import from_mapping

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    import torch

    from training.agent import ReplayAgent

__all__ = [
    "AGENT_KEY",
    "best_checkpoint",
    "check_environment",
    "check_parameters",
    "last_checkpoint",
    "load",
    "named_segments",
    "other_checkpoint",
    "pinned_segments",
    "read_checkpoint",
]


def last_checkpoint(run: Path | str) -> Path:
    """The newest checkpoint of a run directory, from which it resumes; it may be damaged.

    Raises:
        CheckpointError: there is none.
    """
    return _existing(Path(run), ["last.ckpt", "previous.ckpt", "best.ckpt"])


def best_checkpoint(run: Path | str) -> Path:
    """The checkpoint with the best evaluation, or the newest where none was evaluated.

    Raises:
        CheckpointError: there is none.
    """
    return _existing(Path(run), ["best.ckpt", "last.ckpt", "previous.ckpt"])


def named_segments(path: Path | str) -> set[int]:
    """The segments of its store that a checkpoint cannot be resumed without.

    Those are the segments of the window's episodes, and the one that each lane was writing. Of
    others that the position names a rewind reads nothing but the log, where it is still there.
    Whoever takes segments out of a store (retention) keeps these.

    Raises:
        CheckpointError: the file is missing or damaged; it may name any segment then.
    """
    content = read_checkpoint(path)
    state = content.get("OnlineExperience") or content.get("OfflineExperience")
    if not state:
        return set()
    named = {int(row[0]) for row in state["view"]["episodes"]["data"].tolist()}
    lanes = state["position"]["lanes"] if "position" in state else []
    return named | {lane["segment"] for lane in lanes} - {None}


def pinned_segments(run: Path | str) -> set[int]:
    """What `named_segments` gives of all checkpoints of a run directory together.

    Raises:
        CheckpointError: one of them is damaged.
    """
    folder = Path(run) / "checkpoints"
    kept = [folder / name for name in CHECKPOINTS if (folder / name).is_file()]
    return set().union(*map(named_segments, kept))


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
    from training.agents.registry import refuse_unknown_code
    from training.assembly import make_agent

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


def check_environment(kept: Mapping[str, Any], spec: EnvironmentSpec, where: str) -> None:
    """Refuses a checkpoint made for other spaces.

    Raises:
        CheckpointError: naming the space and both descriptions.
    """
    described = spec.to_json()
    for name in ("observation_space", "action_space"):
        if kept[name] != described[name]:
            raise CheckpointError(
                f"{where} was made for {kept['id']} with {name} {kept[name]}, but {spec.id} has "
                f"{described[name]}; use a checkpoint of the same environment"
            )


def check_parameters(
    kept: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor], where: str
) -> None:
    """Refuses a checkpoint of a network of another shape.

    Raises:
        CheckpointError: naming the parameters that differ, their shapes and dtypes.
    """
    shapes = [{name: _looks(each) for name, each in state.items()} for state in (kept, own)]
    names = sorted(shapes[0].keys() | shapes[1].keys())
    differing = [name for name in names if shapes[0].get(name) != shapes[1].get(name)]
    if differing:
        listed = ", ".join(
            f"{name} {shapes[0].get(name, 'absent')} against {shapes[1].get(name, 'absent')}"
            for name in differing
        )
        raise CheckpointError(
            f"{where} holds another network: {listed}; keep the agent's settings as they were"
        )


def _looks(tensor: torch.Tensor) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    return f"{tuple(tensor.shape)}" if name == "float32" else f"{name} {tuple(tensor.shape)}"


def _existing(run: Path, names: list[str]) -> Path:
    folder = run / "checkpoints"
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CheckpointError(
        f"{run} holds no checkpoint: {folder / 'last.ckpt'} does not exist. A run writes its first "
        "one when training starts; start it anew, or name another run"
    )
