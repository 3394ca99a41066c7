"""One trial: a learner that replays one memory by one sampler until it knows the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from storage.errors import ConfigError
from training.cliffwalk.learner import Learner, LearnerKind, Start, learn
from training.cliffwalk.oracle import Oracle
from training.cliffwalk.sampler import Sampler

if TYPE_CHECKING:
    from storage import Store
    from storage.replay import ReplayView

__all__ = ["SOLVED", "Outcome", "Trial", "check_interval"]

SOLVED: Final = 1e-3
"""A mean squared error below this ends a trial."""
FINEST: Final = 10
"""The largest n whose error is looked at after every update."""


def check_interval(n: int, sampler: str) -> int:
    """Updates from one look at the mean squared error to the next; the oracle needs few."""
    return 1 if n <= FINEST or sampler == "oracle" else 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a trial."""

    updates: int
    """Updates until the error was seen to be small, or until the trial was given up."""
    goal_update: int
    """The update that the rewarded transition was first drawn for, from 1; 0 for never."""
    converged: bool
    mean_squared_error: float
    curve: list[tuple[int, float]]
    """(updates, mean squared error) at the looks at it, thinned to one per cent apart."""

    @property
    def updates_after_goal(self) -> int:
        """Updates that followed the first draw of the rewarded transition; 0 where none did."""
        return self.updates - self.goal_update if self.goal_update else 0


@dataclass(frozen=True, slots=True)
class Trial:
    """What is to be tried.

    Args:
        n: States of the environment.
        sampler: How transitions are drawn, one an update.
        learner: "tabular" or "linear".
        start: Parameters begin at "zero", or "normal" with a standard deviation of 0.1.
        step: Step size.
        seed: Of the draws and of the parameters.
        limit: Updates after which the trial is given up.
    """

    n: int
    sampler: Sampler
    learner: LearnerKind = "tabular"
    start: Start = "zero"
    step: float = 0.25
    seed: int = 0
    limit: int = 20_000_000

    def play(self, store: Store | None) -> Outcome:
        """Plays the trial on a store that `fill_store` made; the oracle needs none.

        Raises:
            ConfigError: the store is that of another n.
        """
        learner = Learner(self.n, self.learner, self.start, self.step, self.seed)
        if self.sampler.name == "oracle":
            oracle = Oracle(self.n)
            return _play(learner, lambda: oracle.update(learner), self)
        if store is None or store.env_spec.kwargs != {"n": self.n}:
            raise ConfigError(f"{store} is no memory of Blind Cliffwalk with n = {self.n}")
        with self.sampler.view(store, self.seed) as view:
            return _play(learner, _replay(view, learner, self.sampler.prioritized), self)


def _replay(view: ReplayView, learner: Learner, feeds: bool) -> Callable[[], float]:
    """One draw, one update, and the error from before it fed back; gives the reward drawn."""
    parameters, numbers, errors = learner.parameters, learner.numbers, learner.errors

    def update() -> float:
        batch = view.sample(1)
        learn(
            parameters,
            numbers,
            batch.observation,
            batch.action,
            batch.reward,
            batch.next_observation,
            batch.terminated,
            errors,
        )
        if feeds:
            view.feed_back(batch, priority_error=errors)
        return float(batch.reward[0])

    return update


def _play(learner: Learner, update: Callable[[], float], trial: Trial) -> Outcome:
    interval = check_interval(trial.n, trial.sampler.name)
    updates = goal = marked = 0
    error = learner.mean_squared_error()
    curve = [(0, error)]
    while error >= SOLVED and updates < trial.limit:
        for _ in range(interval):
            updates += 1
            if update() and not goal:
                goal = updates
        error = learner.mean_squared_error()
        since = updates - goal
        if updates - marked >= 0.01 * since:
            marked = updates
            curve.append((updates, error))
    curve.append((updates, error))
    return Outcome(updates, goal, error < SOLVED, error, curve)
