from __future__ import annotations

import math

import numpy as np
import pytest

from storage.randomness import stream_key
from training.batches.discrete_kernels import choose, fill_policy, greedy, probability_ratios

VALUES = np.array([0.3, -1.2, 2.0, 1.9], np.float32)


def distribution(values, epsilon=0.0, temperature=0.0) -> np.ndarray:
    filled = np.empty(len(values), np.float32)
    fill_policy(np.asarray(values, np.float32), epsilon, temperature, filled)
    return filled


def test_epsilon_greedy_is_the_whole_distribution():
    filled = distribution(VALUES, epsilon=0.2)
    assert filled == pytest.approx([0.05, 0.05, 0.85, 0.05], abs=1e-7)
    assert distribution(VALUES, epsilon=1.0) == pytest.approx([0.25] * 4, abs=1e-7)
    assert distribution(VALUES).tolist() == [0, 0, 1, 0]


def test_of_equal_values_the_first_is_best_as_in_numpy():
    for values in ([1, 1, 0], [0, 2, 2], [3, 3, 3]):
        assert greedy(np.array(values, np.float32)) == np.argmax(values)


@pytest.mark.parametrize("temperature", [0.05, 1.0, 40.0])
def test_the_softmax(temperature):
    powers = np.exp((VALUES.astype(np.float64) - 2.0) / temperature)
    assert distribution(VALUES, temperature=temperature) == pytest.approx(
        powers / powers.sum(), rel=1e-6, abs=1e-30
    )
    huge = distribution(VALUES * 1e30, temperature=temperature)
    assert huge.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("settings", [{"epsilon": 0.37}, {"temperature": 0.7}])
def test_probabilities_sum_to_one(settings):
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 18, 250):
        filled = distribution(rng.normal(size=size), **settings)
        assert math.fsum(filled.tolist()) == pytest.approx(1.0, abs=1e-6)
        assert filled.min() > 0


def test_draws_are_a_function_of_seed_step_and_lane():
    even = np.full(1000, 1e-3, np.float32)
    key = stream_key(5, "x")
    drawn = [choose(key, step, lane, even) for step in range(20) for lane in range(3)]
    assert drawn == [choose(key, step, lane, even) for step in range(20) for lane in range(3)]
    assert len(set(drawn)) > 50
    assert drawn != [
        choose(stream_key(6, "x"), step, lane, even) for step in range(20) for lane in range(3)
    ]


def test_draws_have_their_probabilities():
    wanted = np.array([0.1, 0.0, 0.6, 0.3, 0.0], np.float32)
    key = stream_key(1, "x")
    counts = np.bincount([choose(key, step, 0, wanted) for step in range(20_000)], minlength=5)
    assert counts[[1, 4]].tolist() == [0, 0]
    assert counts / 20_000 == pytest.approx(wanted, abs=4 * math.sqrt(0.25 / 20_000))


@pytest.mark.parametrize(("epsilon", "temperature"), [(0.1, 0.0), (1.0, 0.0), (0.0, 0.5)])
def test_ratios_equal_numpys(epsilon, temperature):
    rng = np.random.default_rng(2)
    values = rng.normal(size=(50, 4)).astype(np.float32)
    actions = rng.integers(0, 4, 50)
    behaviour = rng.dirichlet(np.ones(4), 50).astype(np.float32)
    ratios = np.empty(50, np.float32)
    probability_ratios(
        values, epsilon, temperature, actions, behaviour, np.full(50, 2, np.uint8), ratios
    )
    if temperature:
        policy = np.exp(values / temperature)
        policy /= policy.sum(1, keepdims=True)
    else:
        policy = np.full((50, 4), epsilon / 4)
        policy[np.arange(50), values.argmax(1)] += 1 - epsilon
    picked = np.arange(50), actions
    expected = np.clip(policy[picked] / behaviour[picked], math.exp(-7), math.exp(7))
    assert ratios == pytest.approx(expected, rel=1e-5)


def test_a_ratio_needs_a_distribution_that_could_have_drawn_the_action():
    values = np.zeros((6, 2), np.float32)
    behaviour = np.array(
        [[0.5, 0.5], [0.5, 0.5], [1, 0], [np.nan, 0.5], [0.5, 0.5], [1.5, 0.5]], np.float32
    )
    kinds = np.array([2, 0, 2, 2, 2, 2], np.uint8)
    actions = np.array([0, 0, 1, 1, 2, 1])
    ratios = np.empty(6, np.float32)
    probability_ratios(values, 1.0, 0.0, actions, behaviour, kinds, ratios)
    assert ratios[0] == 1.0
    assert np.isnan(ratios[1:]).all()
