"""`sharpwave evaluate RUN`: greedy episodes on fresh seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.parser import VerbParser, natural, positive
from pipeline.run_folder import RunFolder
from storage.errors import ConfigError

if TYPE_CHECKING:
    from training.agent import ReplayAgent
    from training.evaluation import Episode

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    parser = VerbParser("evaluate", "Plays greedy episodes: the policy's mean, no exploration.")
    parser.add_argument(
        "run", metavar="RUN", type=Path, help="a run's folder, as runs/hopper, or a .ckpt file"
    )
    parser.add_argument(
        "--checkpoint",
        choices=["best", "last"],
        help="of a run's folder: the one with the best greedy return while training, or the last "
        "(default best, and last where none was evaluated)",
    )
    parser.add_argument(
        "--episodes", type=positive, default=10, metavar="N", help="how many (default 10)"
    )
    parser.add_argument(
        "--seed", type=natural, default=0, help="resets are derived from it (default 0)"
    )
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="NAME",
        help="import this module path, which the checkpoint names as its agent, environment or a "
        "wrapper; what the run's config.yaml names is trusted (may be given again)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    settings = parser.parse(arguments)

    path = _checkpoint(settings.run, settings.checkpoint)
    from training import load
    from training.named_code import refuse_checkpoint_code

    trusted = _trusted(path, settings.trust)
    agent = load(path, trusted)
    refuse_checkpoint_code(agent.config.environment, path, trusted)
    episodes = _play(agent, settings.episodes, settings.seed)
    summary = {"checkpoint": str(path), **_summary(agent, episodes)}
    print(json.dumps(summary, indent=2) if settings.json else _text(summary))
    return 0


def _checkpoint(path: Path, which: str | None) -> Path:
    """The checkpoint file that `path` and --checkpoint ask for."""
    if path.suffix == ".ckpt" or path.is_file():
        if which is not None:
            raise ConfigError(f"{path} is one checkpoint; --checkpoint chooses among a run's")
        return path
    run = RunFolder.existing(path)
    from training.checkpoint import best_checkpoint, last_checkpoint

    if which == "best" and not (run.checkpoints / "best.ckpt").is_file():
        raise ConfigError(
            f"{run.path} has no best.ckpt: no evaluation was played yet, or evaluation.episodes "
            "is 0; use --checkpoint last"
        )
    return last_checkpoint(run.path) if which == "last" else best_checkpoint(run.path)


def _trusted(path: Path, named: list[str]) -> list[str]:
    """The code that a checkpoint may name: what the user names, or the settings of its run."""
    settings = path.parent.parent / "config.yaml"
    if path.parent.name == "checkpoints" and settings.is_file():
        return [*named, *_named(settings)]
    return named


def _named(settings: Path) -> list[str]:
    """Agent, environment and wrappers that a run's settings name; none where they are damaged."""
    from training.config_file import load_config

    try:
        config = load_config(settings)
    except ConfigError:
        return []
    environment = config.environment
    return [
        config.agent.kind,
        environment.id,
        *(wrapper.class_path for wrapper in environment.wrappers),
    ]


def _play(agent: ReplayAgent, count: int, seed: int) -> list[Episode]:
    from storage.randomness import derive_seed
    from training.environment import make_environment
    from training.evaluation import play_episode

    env = make_environment(agent.config.environment)
    try:
        return [
            play_episode(env, agent.act, derive_seed(seed, "evaluate command", number))
            for number in range(count)
        ]
    finally:
        env.close()


def _summary(agent: ReplayAgent, episodes: list[Episode]) -> dict[str, Any]:
    import numpy as np

    returns = np.array([episode.episode_return for episode in episodes])
    return {
        "environment": agent.config.environment.id,
        "trained_for": agent.experience_text,
        "training_steps": agent.environment_steps,
        "training_updates": agent.counters.updates,
        "episodes": len(episodes),
        "mean_return": float(returns.mean()),
        "deviation": float(returns.std()),
        "smallest": float(returns.min()),
        "largest": float(returns.max()),
        "mean_length": float(np.mean([episode.length for episode in episodes])),
        "returns": returns.tolist(),
        "seeds": [episode.seed for episode in episodes],
    }


def _text(summary: dict[str, Any]) -> str:
    count = summary["episodes"]
    return (
        f"{summary['checkpoint']}: written after {summary['trained_for']}\n"
        f"{summary['environment']}, {count} greedy episode{'' if count == 1 else 's'}\n"
        f"return {summary['mean_return']:,.1f} ± {summary['deviation']:,.1f}"
        f"  ({summary['smallest']:,.1f} to {summary['largest']:,.1f})"
        f"    length {summary['mean_length']:,.1f}"
    )
