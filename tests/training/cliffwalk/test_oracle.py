from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from training.cliffwalk.learner import Learner
from training.cliffwalk.oracle import Oracle
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import SOLVED, Trial


def test_it_finds_the_goal_at_once_and_then_what_helps_most() -> None:
    """From 0: the goal by 1/4. Again the goal (loss down by 1 - 0.75² of 0.5625) and so on."""
    oracle, learner = Oracle(4), Learner(4)
    assert oracle.update(learner) == 1.0
    assert learner.values[3, 1] == 0.25
    assert np.count_nonzero(learner.parameters) == 1
    assert oracle.update(learner) == 1.0
    assert learner.values[3, 1] == pytest.approx(0.4375)


@pytest.mark.parametrize("kind", ["tabular", "linear"])
def test_no_update_of_any_transition_would_have_been_better(kind: str) -> None:
    """A naive twin: try each one on a copy."""
    oracle, learner = Oracle(5), Learner(5, kind, "normal", seed=2)
    for _ in range(60):
        best = min(_after(learner, state, action) for state in range(5) for action in range(2))
        oracle.update(learner)
        assert learner.mean_squared_error() == pytest.approx(best, rel=1e-12)


def _after(learner: Learner, state: int, action: int) -> float:
    """The error after an update of one pair, by plain arithmetic."""
    n, values = 5, learner.values
    right = action == state % 2
    target = 1.0 if right and state == n - 1 else 0.0
    if right and state < n - 1:
        target = 0.8 * values[state + 1].max()
    change = 0.25 * (target - values[state, action])
    values = values.copy()
    values[state, action] += change
    values += change * learner.numbers[0]
    return float(np.mean((values - learner.truth.reshape(n, 2)) ** 2))


@pytest.mark.parametrize(("n", "updates"), [(8, 280), (12, 613), (16, 1080)])
def test_updates_of_a_whole_trial(n: int, updates: int) -> None:
    outcome = Trial(n, Sampler("oracle")).play(None)
    assert outcome.converged
    assert outcome.goal_update == 1
    assert outcome.updates == updates


@pytest.mark.parametrize(
    ("n", "oracle", "largest", "backwards"), [(8, 280, 220, 112), (12, 613, 458, 180)]
)
def test_the_best_next_update_is_not_the_shortest_way(
    n: int, oracle: int, largest: int, backwards: int
) -> None:
    """Updates of the largest error are fewer, and of the last one above 0.01 fewest."""
    assert Trial(n, Sampler("oracle")).play(None).updates == oracle
    assert updates_by(n, lambda errors: int(np.argmax(errors))) == largest
    assert updates_by(n, _last_above) == backwards


def updates_by(n: int, choose: Callable[[np.ndarray], int]) -> int:
    """Updates of right actions, from 0, until all values are learnt; `choose` sees all |δ|."""
    right, truth = np.zeros(n), Learner(n).truth.reshape(n, 2).max(axis=1)
    updates = 0
    while np.sum((right - truth) ** 2) / (2 * n) >= SOLVED:
        errors = np.append((1 - 1 / n) * right[1:], 1.0) - right
        at = choose(np.abs(errors))
        right[at] += 0.25 * errors[at]
        updates += 1
    return updates


def _last_above(errors: np.ndarray) -> int:
    above = np.flatnonzero(errors > 0.01)
    return int(above[-1] if len(above) else np.argmax(errors))
