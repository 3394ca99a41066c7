"""Greedy episodes on environments and seeds of their own."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from lightning.pytorch.callbacks import Callback

from storage.randomness import derive_seed
from training.environments.environment import make_environment
from training.environments.episode_limit import episode_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    import gymnasium
    import lightning

    from training.agent import ReplayAgent

__all__ = [
    "EVALUATION_METRIC",
    "Episode",
    "Evaluation",
    "evaluation_rounds",
    "longest_episode",
    "play_episode",
]

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
    cut: bool = False
    """Whether it was left before the environment had ended it; its return is of that part."""


def play_episode(
    env: gymnasium.Env[Any, Any],
    act: Callable[[Any], Any],
    seed: int,
    most: int | None = None,
    going: Callable[[int], bool] = lambda _: True,
) -> Episode:
    """Plays one episode of ``env`` from a seeded reset with the actions of ``act``.

    Args:
        env: Where it is played.
        act: Gives the action for an observation.
        seed: Of the reset.
        most: Steps after which it is cut; None plays on until the environment ends it.
        going: Asked before each step, with the number of steps so far, whether to play on; where
            not, the episode is cut there.
    """
    observation, _ = env.reset(seed=seed)
    total, length, ended = 0.0, 0, False
    while not ended and length != most and going(length):
        observation, reward, terminated, truncated, _ = env.step(act(observation))
        total += float(reward)
        length += 1
        ended = terminated or truncated
    return Episode(seed, total, length, cut=not ended)


def longest_episode(env: gymnasium.Env[Any, Any], most: int) -> int | None:
    """Steps after which an episode is to be cut: ``most``, or None where ``env`` has a limit."""
    return most if episode_limit(env) is None else None


def evaluation_rounds(every_steps: int, round_steps: int) -> int:
    """Whole rounds between two evaluations."""
    return max(1, round(every_steps / round_steps))


class Evaluation(Callback):
    """Plays greedy episodes at round ends and logs their mean return.

    Seeds are derived from (run seed, "evaluation", steps, episode), so evaluations
    touch no random stream of training, and a resumed run evaluates as a straight one.

    Where training is asked to stop (a callback has a ``stop_asked`` that is true, or Lightning has
    noted a SIGTERM), an evaluation is left at its next step, and nothing of it is logged.
    """

    def __init__(self) -> None:
        self._env: gymnasium.Env[Any, Any] | None = None
        self._told = False

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        """Evaluates at the round ends where it is due, and after the last round."""
        agent: ReplayAgent = pl_module
        settings = agent.config.evaluation
        interval = evaluation_rounds(settings.every_steps, agent.config.loop.round_steps)
        if agent.learning and agent.passed(interval):
            self._evaluate(trainer, agent)

    def on_train_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Closes the environment."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def _evaluate(self, trainer: lightning.Trainer, agent: ReplayAgent) -> None:
        episodes = self._play(trainer, agent)
        if _stop_asked(trainer):
            trainer.should_stop = True  # no further round, also where the stop was asked for here
            return
        self._tell_cut(agent, episodes)
        returns = np.array([episode.episode_return for episode in episodes])
        metrics = {
            EVALUATION_METRIC: float(returns.mean()),
            "evaluation_return_min": float(returns.min()),
            "evaluation_return_max": float(returns.max()),
            "evaluation_length": float(np.mean([episode.length for episode in episodes])),
        }
        agent.log_row(metrics)
        agent.log(EVALUATION_METRIC, metrics[EVALUATION_METRIC], on_step=True, logger=False)

    def _play(self, trainer: lightning.Trainer, agent: ReplayAgent) -> list[Episode]:
        """The evaluation's episodes; where a stop is asked for, not all of them."""
        config, steps = agent.config, agent.steps
        if self._env is None:
            self._env = make_environment(config.evaluation_environment)
        most = longest_episode(self._env, config.evaluation.max_steps)
        episodes: list[Episode] = []
        while len(episodes) < config.evaluation.episodes and not _stop_asked(trainer):
            seed = derive_seed(config.seed, "evaluation", steps, len(episodes))
            episodes.append(
                play_episode(self._env, agent.act, seed, most, lambda _: not _stop_asked(trainer))
            )
        return episodes

    def _tell_cut(self, agent: ReplayAgent, episodes: list[Episode]) -> None:
        """Warns, once a run, where an episode came to the cap."""
        count = sum(episode.cut for episode in episodes)
        if not count or self._told:
            return
        self._told = True
        most = agent.config.evaluation.max_steps
        warnings.warn(
            f"{count} of the {len(episodes)} greedy episodes of the evaluation at step "
            f"{agent.steps:,} had not ended after {most:,} steps (evaluation.max_steps) and were "
            f"cut there: {agent.config.environment.id} has no limit of steps, and their returns "
            "are those of the part that was played. Give it a limit (environment.wrappers "
            "TimeLimit), or set evaluation.max_steps. This is told once",
            stacklevel=2,
        )


def _stop_asked(trainer: Any) -> bool:
    """Whether training is to end after this round."""
    if trainer.received_sigterm:
        return True
    return any(getattr(each, "stop_asked", False) for each in trainer.callbacks)
