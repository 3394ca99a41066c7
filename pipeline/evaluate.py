"""`sharpwave evaluate RUN`: greedy episodes on fresh seeds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.keyword_arguments import keywords
from pipeline.loaded_agent import LoadedAgent, add_checkpoint_options
from pipeline.parser import VerbParser, natural, positive
from pipeline.playing_line import playing_line
from pipeline.streams import complain

if TYPE_CHECKING:
    from training.agent import ReplayAgent
    from training.config import RunConfig
    from training.environments.environment_config import EnvironmentConfig
    from training.evaluation import Episode

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    parser = VerbParser("evaluate", "Plays greedy episodes: the policy's mean, no exploration.")
    parser.add_argument(
        "run", metavar="RUN", type=Path, help="a run's folder, as runs/hopper, or a .ckpt file"
    )
    add_checkpoint_options(parser)
    parser.add_argument(
        "--episodes", type=positive, default=10, metavar="N", help="how many (default 10)"
    )
    parser.add_argument(
        "--seed", type=natural, default=0, help="resets are derived from it (default 0)"
    )
    parser.add_argument(
        "--max-steps",
        type=positive,
        metavar="N",
        help="cut episodes after so many steps (default: the run's evaluation.max_steps where "
        "the environment has no limit of steps, else none)",
    )
    parser.add_argument(
        "--environment-kwargs",
        type=keywords,
        default={},
        metavar="KWARGS",
        help="keyword arguments of the environment, as {noop_max: 30}; they win over the run's "
        "evaluation.environment_kwargs and environment.kwargs",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    settings = parser.parse(arguments)

    loaded = LoadedAgent.at(settings.run, settings.checkpoint, settings.trust)
    agent = loaded.agent
    from training.environments.atari_settings import same_game_hint

    environment = _environment(agent.config, settings.environment_kwargs)
    episodes = _play(agent, environment, settings.episodes, settings.seed, settings.max_steps)
    _tell_cut(episodes)
    hint = same_game_hint(environment, len(episodes))
    if hint is not None:
        complain(f'sharpwave: note: {hint}: --environment-kwargs="{{noop_max: 30}}"')
    summary = {"checkpoint": str(loaded.path), **_summary(agent, environment, episodes)}
    print(json.dumps(summary, indent=2, default=str) if settings.json else _text(summary))
    return 0


def _environment(config: RunConfig, own: dict[str, Any]) -> EnvironmentConfig:
    """Where the agent is evaluated, with keyword arguments of the user's own."""
    played = config.evaluation_environment
    return dataclasses.replace(played, kwargs=played.kwargs | own)


def _play(
    agent: ReplayAgent, environment: EnvironmentConfig, count: int, seed: int, most: int | None
) -> list[Episode]:
    """The episodes; `most` steps are all that one has, where the user says so."""
    from storage.environment_spec import EnvironmentSpec
    from storage.randomness import derive_seed
    from training.environments.environment import check_same_spaces, make_environment
    from training.evaluation import longest_episode, play_episode

    env = make_environment(environment)
    longest = most or longest_episode(env, agent.config.evaluation.max_steps)
    episodes: list[Episode] = []
    try:
        check_same_spaces(environment.kwargs, EnvironmentSpec.from_env(env), agent.spec)
        with playing_line(count) as show:

            def going(steps: int) -> bool:
                show(len(episodes), steps)
                return True

            while len(episodes) < count:
                own = derive_seed(seed, "evaluate command", len(episodes))
                episodes.append(play_episode(env, agent.act, own, longest, going))
            return episodes
    finally:
        env.close()


def _tell_cut(episodes: list[Episode]) -> None:
    cut = [episode.length for episode in episodes if episode.cut]
    if cut:
        complain(
            f"sharpwave: warning: {len(cut)} of {len(episodes)} episodes had not ended after "
            f"{cut[0]:,} steps and were cut there; their returns are those of the part that was "
            "played. --max-steps=N plays longer ones, or shorter ones"
        )


def _summary(
    agent: ReplayAgent, environment: EnvironmentConfig, episodes: list[Episode]
) -> dict[str, Any]:
    import numpy as np

    returns = np.array([episode.episode_return for episode in episodes])
    return {
        "environment": environment.id,
        "environment_kwargs": environment.kwargs,
        "trained_for": agent.experience_text,
        "training_steps": agent.environment_steps,
        "training_updates": agent.counters.updates,
        "episodes": len(episodes),
        "cut_episodes": sum(episode.cut for episode in episodes),
        "mean_return": float(returns.mean()),
        "deviation": float(returns.std()),
        "smallest": float(returns.min()),
        "largest": float(returns.max()),
        "mean_length": float(np.mean([episode.length for episode in episodes])),
        "returns": returns.tolist(),
        "seeds": [episode.seed for episode in episodes],
    }


def _text(summary: dict[str, Any]) -> str:
    count, kwargs = summary["episodes"], summary["environment_kwargs"]
    made = f" with {json.dumps(kwargs, default=str)}" if kwargs else ""
    return (
        f"{summary['checkpoint']}: written after {summary['trained_for']}\n"
        f"{summary['environment']}{made}, {count} greedy episode{'' if count == 1 else 's'}\n"
        f"return {summary['mean_return']:,.1f} ± {summary['deviation']:,.1f}"
        f"  ({summary['smallest']:,.1f} to {summary['largest']:,.1f})"
        f"    length {summary['mean_length']:,.1f}"
    )
