from __future__ import annotations

import numpy as np
import pytest

from training.cliffwalk.learner import Learner, learn


def update(learner: Learner, *transitions: tuple[int, int, float, int, bool]) -> list[float]:
    """Learns from (s, a, r, s', end) one after the other; gives the errors."""
    errors = []
    for state, action, reward, after, end in transitions:
        learn(
            learner.parameters,
            learner.numbers,
            np.array([state]),
            np.array([action]),
            np.array([reward]),
            np.array([after]),
            np.array([end]),
            learner.errors,
        )
        errors.append(learner.errors[0])
    return errors


GOAL = (3, 1, 1.0, 3, True)
BEFORE_GOAL = (2, 0, 0.0, 3, False)
CLIFF = (2, 1, 0.0, 2, True)


def test_a_table_learns_by_hand() -> None:
    """γ = 3/4: 1/4, then γ/4 · 1/4 = 3/64, then 1/4 + 1/4 · 3/4 = 7/16."""
    learner = Learner(4)
    assert update(learner, GOAL, BEFORE_GOAL, GOAL) == [1.0, 0.1875, 0.75]
    expected = np.zeros((4, 2))
    expected[3, 1], expected[2, 0] = 7 / 16, 3 / 64
    assert np.array_equal(learner.values, expected)


def test_an_end_has_no_future() -> None:
    """The state shown at the end is worth 1/4 to others, and nothing to the cliff."""
    learner = Learner(4)
    update(learner, GOAL, BEFORE_GOAL)
    assert update(learner, CLIFF) == [0.0]


def test_the_best_action_counts() -> None:
    learner = Learner(4, step=1.0)
    learner.parameters[6:8] = -2.0, -1.0
    assert update(learner, BEFORE_GOAL) == [0.75]
    assert learner.values[2, 0] == -0.75


def test_a_linear_learner_moves_all_values_by_its_constant() -> None:
    """θ_goal and the constant gain 1/4 each; the next error is 0 + γ/2 - 1/4 = 1/8."""
    learner = Learner(4, "linear")
    assert update(learner, GOAL, BEFORE_GOAL) == [1.0, 0.125]
    expected = np.full((4, 2), 0.25 + 0.125 / 4)
    expected[3, 1] += 0.25
    expected[2, 0] += 0.125 / 4
    assert np.allclose(learner.values, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", ["tabular", "linear"])
def test_the_error_is_the_mean_over_all_pairs(kind: str) -> None:
    learner = Learner(4, kind, "normal", seed=5)
    assert learner.mean_squared_error() == pytest.approx(
        np.mean((learner.values - learner.truth.reshape(4, 2)) ** 2), rel=1e-13
    )


def test_the_first_error_of_zero_is_that_of_the_true_values() -> None:
    squares = sum(0.75 ** (2 * k) for k in range(4))
    assert Learner(4).mean_squared_error() == pytest.approx(squares / 8, rel=1e-13)


def test_parameters_start_at_zero_or_are_drawn_by_seed() -> None:
    assert not Learner(4).parameters.any()
    drawn = [Learner(1000, "tabular", "normal", seed=seed).parameters for seed in (0, 0, 1)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert drawn[0].std() == pytest.approx(0.1, rel=0.05)
    assert abs(drawn[0].mean()) < 0.01
