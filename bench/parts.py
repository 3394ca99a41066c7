"""The loop beside its parts: what a step would cost if nothing but these parts did."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch.callbacks import Callback

from bench.effort import Effort
from bench.figure import Figure, Spread
from bench.inside import Tap, engine_of
from bench.loop_setup import ENVIRONMENT, LoopSetup, play
from bench.stopwatches import Stopwatches
from training.environments.environment import make_environment
from training.scaling import flat_rows

__all__ = ["measure"]

_TARGET = 1 / 0.75
_AROUND = 1.06
"""Three per cent for Lightning, three for logs, checkpoints and bar."""
_EPISODES = 12
_BLOCK = 64
_PASSES = 5
_ROUND = "round"


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """The loop beside the sum of its parts measured alone, and a step beside its round."""
    setup = LoopSetup("whole")
    turns = _Turns(setup, effort.repeats(12))
    play(setup, folder, turns, turns)
    sums = [1e6 / sum(parts.values()) for parts in turns.parts]
    each = {
        name: Spread.of([parts[name] for parts in turns.parts]).median for name in turns.parts[0]
    }
    return [
        Figure.of(
            "a step, beside its round",
            "µs",
            [1e6 / rate for rate in turns.rates],
            turns.rounds,
            "the same round, without what Lightning does around it",
            target=_AROUND,
            details={"environment": ENVIRONMENT},
        ),
        Figure.of(
            "loop, beside its parts",
            "steps/s",
            turns.rates,
            sums,
            "environment, act, sample, update and feed-back, each alone",
            target=_TARGET,
            details={"environment": ENVIRONMENT, "microseconds": each},
        ),
    ]


class _Turns(Callback):
    """Lets the loop run for a stretch, then measures every part alone, and so on."""

    def __init__(self, setup: LoopSetup, repeats: int) -> None:
        self.rates: list[float] = []
        self.rounds: list[float] = []
        """Microseconds a step within rounds."""
        self.parts: list[dict[str, float]] = []
        self._setup = setup
        self._repeats = repeats
        self._left = 0
        self._watches = Stopwatches()
        self._began: tuple[int, float] | None = None

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._watches.put_on(trainer.datamodule, "play_round", _ROUND)
        self._parts = _Parts(pl_module, trainer.datamodule, trainer.optimizers[0])

    def __call__(self, agent: Any) -> bool:
        if agent.counters.updates < self._setup.updates_before:
            return True
        self._left -= 1
        if self._left > 0:
            return True
        if self._began is not None:
            steps, clock = self._began
            taken = time.perf_counter() - clock
            done = agent.environment_steps - steps
            self.rates.append(done / taken)
            self.rounds.append(self._watches.taken[_ROUND] / 1e3 / done)
            passes = [self._parts.microseconds() for _ in range(_PASSES)]
            self.parts.append(
                {name: statistics.median(each[name] for each in passes) for name in passes[0]}
            )
        self._left = self._setup.rounds
        self._watches.taken[_ROUND] = 0
        self._began = (agent.environment_steps, time.perf_counter())
        return len(self.rates) < self._repeats


class _Parts:
    """The parts of a step, each on the run's own objects and on what its store holds by now."""

    def __init__(self, agent: Any, data: Any, optimizer: torch.optim.Optimizer) -> None:
        self._agent = agent
        self._view = data.view
        self._store = data.store
        self._optimizer = optimizer
        self._env = make_environment(agent.config.environment)
        self._update = Tap(engine_of(agent), "update")
        self._feed_back = Tap(self._view, "feed_back")

    def microseconds(self) -> dict[str, float]:
        """Microseconds of each part; what the loop goes on from is left as it was."""
        self._store.refresh()
        last = self._store.n_episodes
        newest = range(max(0, last - _EPISODES), last)
        episodes = [self._store.episode(index) for index in newest]
        return {
            "environment": self._environment(episodes),
            "act": self._act(episodes),
            "sample": self._sample(),
            "update": self._update_alone(),
            "feed-back": self._feed_back_alone(),
        }

    def _environment(self, episodes: list[Any]) -> float:
        """The newest episodes again, from their seeds and actions: the very same steps."""
        env = self._env
        played = [(episode.record.seed, list(episode.action)) for episode in episodes]
        start = time.perf_counter_ns()
        for seed, actions in played:
            env.reset(seed=seed)
            for action in actions:
                env.step(action)
        taken = time.perf_counter_ns() - start
        return taken / 1e3 / sum(len(actions) for _, actions in played)

    def _act(self, episodes: list[Any]) -> float:
        act = self._agent.policy.act
        observations = [row for episode in episodes for row in episode.observation[:-1]]
        start = time.perf_counter_ns()
        for step, observation in enumerate(observations):
            act(0, step, observation)
        return (time.perf_counter_ns() - start) / 1e3 / len(observations)

    def _sample(self) -> float:
        size = self._agent.config.agent.batch_size
        start = time.perf_counter_ns()
        for _ in range(_BLOCK):
            self._view.sample(size)
        return (time.perf_counter_ns() - start) / 1e3 / _BLOCK

    def _update_alone(self) -> float:
        """The run's last update again and again; then weights and optimizer are put back."""
        states = self._optimizer.state.values()
        tensors = [*self._agent.parameters(), *(t for state in states for t in state.values())]
        kept = [(tensor, tensor.detach().clone()) for tensor in tensors]
        call, arguments, keywords = (
            self._update.call,
            self._update.arguments,
            self._update.keywords,
        )
        start = time.perf_counter_ns()
        for _ in range(_BLOCK):
            call(*arguments, **keywords)
        taken = time.perf_counter_ns() - start
        with torch.no_grad():
            for tensor, before in kept:
                tensor.copy_(before)
        return taken / 1e3 / _BLOCK

    def _feed_back_alone(self) -> float:
        """Batches with the values and ratios that the present policy gives them."""
        keywords = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in self._feed_back.keywords.items()
        }
        taken = 0
        for _ in range(_BLOCK):
            batch = self._view.sample(self._agent.config.agent.batch_size)
            value, ratio = self._agent.actor.evaluate(
                flat_rows(batch.observation),
                batch.raw_action,
                batch.behaviour,
                batch.behaviour_kind,
            )
            keywords |= {"value": value, "importance_ratio": ratio}
            start = time.perf_counter_ns()
            self._feed_back.call(batch, **keywords)
            taken += time.perf_counter_ns() - start
        return taken / 1e3 / _BLOCK
