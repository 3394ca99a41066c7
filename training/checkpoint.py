"""Finds, reads and loads checkpoints: tensors and Python scalars only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from storage import EnvironmentSpec
from storage.errors import CheckpointError
from training.config import RunConfig
from training.config_file import from_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from training.agent import ReplayAgent

__all__ = [
    "AGENT_KEY",
    "best_checkpoint",
    "check_environment",
    "check_parameters",
    "last_checkpoint",
    "load",
    "read_checkpoint",
]

AGENT_KEY = "sharpwave"
"""Where a checkpoint keeps the agent's settings, environment and counters."""


def last_checkpoint(run: Path | str) -> Path:
    """The newest checkpoint of a run directory, from which it resumes.

    Raises:
        CheckpointError: there is none.
    """
    return _existing(Path(run), ["last.ckpt"])


def best_checkpoint(run: Path | str) -> Path:
    """The checkpoint with the best evaluation, or the newest where none was evaluated.

    Raises:
        CheckpointError: there is none.
    """
    return _existing(Path(run), ["best.ckpt", "last.ckpt"])


def read_checkpoint(path: Path | str) -> dict[str, Any]:
    """The content of a checkpoint file.

    Raises:
        CheckpointError: the file is missing, damaged, or not written by Sharpwave.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {path}")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's unpickler runs into any error in bytes that are no pickle
        found = str(error).partition("\n")[0] or type(error).__name__
        raise CheckpointError(
            f"{path} cannot be read as a checkpoint ({found}); it is damaged or was not written by "
            "Sharpwave. Use another one."
        ) from error
    if not isinstance(content, dict) or AGENT_KEY not in content:
        raise CheckpointError(f"{path} holds no Sharpwave agent")
    return content


def load(path: Path | str) -> ReplayAgent:
    """The agent in a checkpoint file, or the best one of a run directory, ready to act.

    Example:
        >>> agent = training.load("runs/hopper")              # doctest: +SKIP
        >>> action = agent.act(observation)                   # doctest: +SKIP

    Raises:
        CheckpointError: no checkpoint there, or one that cannot be read.
    """
    from training.assembly import make_agent

    path = best_checkpoint(path) if Path(path).is_dir() else Path(path)
    content = read_checkpoint(path)
    kept = content[AGENT_KEY]
    agent = make_agent(
        from_mapping(RunConfig, kept["config"]), EnvironmentSpec.from_json(kept["environment"])
    )
    agent.restore(content)
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
        CheckpointError: naming the parameters that differ and their shapes.
    """
    shapes = [{name: tuple(each.shape) for name, each in state.items()} for state in (kept, own)]
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


def _existing(run: Path, names: list[str]) -> Path:
    folder = run / "checkpoints"
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CheckpointError(
        f"{run} holds no checkpoint: {folder / names[-1]} does not exist. A run writes its first "
        "one when training starts; start it anew, or name another run"
    )
