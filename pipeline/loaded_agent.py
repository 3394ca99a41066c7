"""The agent in a checkpoint that a user names, with what it may import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.run_folder import RunFolder
from storage.errors import ConfigError

if TYPE_CHECKING:
    from training.agent import ReplayAgent

__all__ = ["LoadedAgent", "add_checkpoint_options"]


@dataclass(frozen=True, slots=True)
class LoadedAgent:
    """An agent that is ready to act, and the file it comes from."""

    path: Path
    agent: ReplayAgent

    @classmethod
    def at(cls, run: Path, which: str | None, trust: Sequence[str]) -> LoadedAgent:
        """The agent that RUN, --checkpoint and --trust ask for; its environment may be made.

        From here on torch has as many threads as in the agent's run: more than there are free
        cores make acting many times slower.

        Raises:
            CheckpointError: there is no checkpoint, or it cannot be read.
            ConfigError: there is no run, or the checkpoint names code that nobody has vouched for.
        """
        path = _checkpoint(run, which)
        import torch

        from training import load
        from training.named_code import refuse_checkpoint_code

        trusted = _trusted(path, trust)
        agent = load(path, trusted)
        refuse_checkpoint_code(agent.config.environment, path, trusted)
        _check_belongs(agent, path, trust)
        torch.set_num_threads(agent.config.loop.threads)
        return cls(path, agent)


def _check_belongs(agent: ReplayAgent, path: Path, named: Sequence[str]) -> None:
    """Refuses a checkpoint in the folder of a run of another agent or environment.

    What the user has named by --trust may differ.
    """
    settings = path.parent.parent / "config.yaml"
    if path.parent.name != "checkpoints" or not settings.is_file():
        return
    from training.config_file import load_config

    try:
        own = load_config(settings)
    except ConfigError:
        return  # damaged settings hinder nobody from acting
    kept = agent.config
    for name, here, there in (
        ("agent.kind", own.agent.kind, kept.agent.kind),
        ("environment.id", own.environment.id, kept.environment.id),
    ):
        if here != there and there not in named:
            raise ConfigError(
                f"{path} is of another run: its {name} is {there!r}, {settings} says {here!r}; put "
                "the run's own checkpoint back, or move this one elsewhere to play it"
            )


def add_checkpoint_options(parser: Any) -> None:
    """Adds --checkpoint and --trust to an argument parser."""
    parser.add_argument(
        "--checkpoint",
        choices=["best", "last"],
        help="of a run's folder: the one with the best greedy return while training, or the last "
        "(default best, and last where none was evaluated)",
    )
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="NAME",
        help="import this module path, which the checkpoint names as its agent, environment or a "
        "wrapper; what the run's config.yaml names is trusted (may be given again)",
    )


def _checkpoint(path: Path, which: str | None) -> Path:
    """The checkpoint file that `path` and --checkpoint ask for."""
    if path.suffix == ".ckpt" or path.is_file():
        if which is not None:
            raise ConfigError(f"{path} is one checkpoint; --checkpoint chooses among a run's")
        return path
    run = RunFolder.existing(path)
    from training.checkpoints.checkpoint import best_checkpoint, last_checkpoint

    if which == "best" and not (run.checkpoints / "best.ckpt").is_file():
        raise ConfigError(
            f"{run.path} has no best.ckpt: no evaluation was played yet, or evaluation.episodes "
            "is 0; use --checkpoint last"
        )
    return last_checkpoint(run.path) if which == "last" else best_checkpoint(run.path)


def _trusted(path: Path, named: Sequence[str]) -> list[str]:
    """The code that a checkpoint may name: what the user names, or the settings of its run."""
    settings = path.parent.parent / "config.yaml"
    if path.parent.name == "checkpoints" and settings.is_file():
        return [*named, *_named(settings)]
    return list(named)


def _named(settings: Path) -> list[str]:
    """Agent, environment and wrappers that a run's settings name; none where they are damaged.

    Nothing of them is imported: what cannot be is told where it is needed.
    """
    from training.settings_yaml import read_file

    try:
        values = read_file(settings)
        agent, environment = values["agent"], values["environment"]
        wrappers = [wrapper["class_path"] for wrapper in environment.get("wrappers", [])]
        return [str(each) for each in (agent["kind"], environment["id"], *wrappers)]
    except (ConfigError, KeyError, TypeError, AttributeError):
        return []
