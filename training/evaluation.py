"""Greedy episodes on environments and seeds of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from lightning.pytorch.callbacks import Callback

from storage.randomness import derive_seed
from training.environments.environment import make_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    import gymnasium
    import lightning

    from training.agent import ReplayAgent

__all__ = ["EVALUATION_METRIC", "Episode", "Evaluation", "evaluation_rounds", "play_episode"]

EVALUATION_METRIC = "evaluation_return"
"""Mean return of the newest evaluation: what a checkpoint callback monitors."""


@dataclass(frozen=True, slots=True)
class Episode:
    """How one evaluation episode went."""

    seed: int
    """Seed of its reset."""
    episode_return: float
    """Undiscounted sum of raw rewards."""
    length: int
    """Steps."""


def play_episode(env: gymnasium.Env[Any, Any], act: Callable[[Any], Any], seed: int) -> Episode:
    """Plays one episode of ``env`` from a seeded reset with the actions of ``act``."""
    observation, _ = env.reset(seed=seed)
    total, length, ended = 0.0, 0, False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(act(observation))
        total += float(reward)
        length += 1
        ended = terminated or truncated
    return Episode(seed, total, length)


def evaluation_rounds(every_steps: int, round_steps: int) -> int:
    """Whole rounds between two evaluations."""
    return max(1, round(every_steps / round_steps))


class Evaluation(Callback):
    """Plays greedy episodes at round ends and logs their mean return.

    Seeds are derived from (run seed, "evaluation", steps, episode), so evaluations
    touch no random stream of training, and a resumed run evaluates as a straight one.
    """

    def __init__(self) -> None:
        self._env: gymnasium.Env[Any, Any] | None = None

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:  # noqa: ARG002
        """Evaluates at the round ends where it is due, and after the last round."""
        agent: ReplayAgent = pl_module
        settings = agent.config.evaluation
        interval = evaluation_rounds(settings.every_steps, agent.config.loop.round_steps)
        if agent.learning and agent.passed(interval):
            self._evaluate(agent)

    def on_train_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Closes the environment."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def _evaluate(self, agent: ReplayAgent) -> None:
        config = agent.config
        if self._env is None:
            self._env = make_environment(config.environment)
        steps = agent.steps
        episodes = [
            play_episode(
                self._env, agent.act, derive_seed(config.seed, "evaluation", steps, number)
            )
            for number in range(config.evaluation.episodes)
        ]
        returns = np.array([episode.episode_return for episode in episodes])
        metrics = {
            EVALUATION_METRIC: float(returns.mean()),
            "evaluation_return_min": float(returns.min()),
            "evaluation_return_max": float(returns.max()),
            "evaluation_length": float(np.mean([episode.length for episode in episodes])),
        }
        agent.log_row(metrics)
        agent.log(EVALUATION_METRIC, metrics[EVALUATION_METRIC], on_step=True, logger=False)
