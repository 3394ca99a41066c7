"""Value targets against the reference vectors, a direct sum, and full sweeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.kernel import address_of
from storage.replay import value_targets
from storage.replay.tables import COLUMNS, FIXED_COLUMNS, OVERLAY_DTYPES, RATIO, TARGET, VALUE
from storage.replay.targets import set_closing_target, sweep

VALUES = np.array([1.0, 2.0, 0.5])
RATIOS = np.array([0.8, 1.6, 0.5])
REWARDS = np.array([1.0, 0.5, -1.0])
GAMMA = 0.9

VECTORS = [
    (VALUES, RATIOS, 0.0, [1.198, 0.275, -0.25], [1.2475, 0.275, -1]),
    (VALUES, RATIOS, 1.5, [1.6354, 0.8825, 0.425], [1.79425, 0.8825, 0.35]),
    (np.array([1, 2, 0.7]), np.array([0.8, 1.6, 2]), 0.0, [0.712, -0.4, -1], [0.64, -0.4, -1]),
    (
        np.array([1, 1.5, 0.5]),
        np.array([0.8, 0.25, 0.5]),
        0.0,
        [1.8595, 1.19375, -0.25],
        [2.074375, 0.275, -1],
    ),
]


@pytest.mark.parametrize(("values", "ratios", "closing", "targets", "action_values"), VECTORS)
def test_reference_vectors(values, ratios, closing, targets, action_values) -> None:
    got = value_targets(REWARDS, ratios, values, closing, GAMMA)
    np.testing.assert_allclose(got, targets, rtol=1e-12)
    following = np.append(got[1:], closing)
    np.testing.assert_allclose(REWARDS + GAMMA * following, action_values, rtol=1e-12)


def test_one_step_terminal_episode() -> None:
    got = value_targets(np.array([1.0]), np.array([0.1]), np.array([5.0]), 0.0, GAMMA)
    assert got[0] == pytest.approx(4.6, rel=1e-12)


def v_trace(rewards, ratios, values, closing, discount) -> np.ndarray:
    """The O(T²) sum of the V-trace paper with both clips at 1."""
    length = len(rewards)
    following = np.append(values[1:], closing)
    clipped = np.minimum(1.0, ratios)
    deltas = clipped * (rewards + discount * following - values)
    targets = np.zeros(length)
    for s in range(length):
        terms = [discount ** (t - s) * np.prod(clipped[s:t]) * deltas[t] for t in range(s, length)]
        targets[s] = values[s] + sum(terms)
    return targets


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.floats(0, 1), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_targets_equal_v_trace(length, spread, discount, seed) -> None:
    rng = np.random.default_rng(seed)
    ratios = np.exp(3 * spread * rng.normal(size=length))
    rewards, values = rng.normal(size=(2, length))
    closing = rng.normal()
    got = value_targets(rewards, ratios, values, closing, discount)
    wanted = v_trace(rewards, ratios, values, closing, discount)
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


class Episode:
    """The columns of one episode in memory, addressed as a segment of one row table."""

    def __init__(self, length: int, terminated: bool, rng: np.random.Generator) -> None:
        rows = length + 1
        self.length = length
        self.columns = {name: np.zeros(rows, dtype) for name, dtype in OVERLAY_DTYPES.items()}
        self.columns["reward"] = rng.normal(size=rows)
        self.columns["terminated"] = np.zeros(rows, bool)
        self.columns["truncated"] = np.zeros(rows, bool)
        self.columns["terminated" if terminated else "truncated"][length - 1] = True
        self["value"][:] = rng.normal(size=rows)
        self["importance_ratio"][:] = np.exp(rng.normal(size=rows))
        self.table = np.zeros((1, COLUMNS + len(FIXED_COLUMNS)), np.int64)
        for place, name in enumerate(FIXED_COLUMNS):
            self.table[0, COLUMNS + place] = address_of(self.columns[name])

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def full(self, plan: np.ndarray) -> None:
        set_closing_target(self.table, 0, 0, self.length)
        sweep(self.table, 0, 0, self.length - 1, plan, False)

    def naive(self, scale: float, discount: float) -> np.ndarray:
        """The recursion in plain Python, with the columns' rounding."""
        targets = np.zeros(self.length + 1, np.float32)
        if not self["terminated"][self.length - 1]:
            targets[-1] = self["value"][-1]
        for t in range(self.length - 1, -1, -1):
            clipped = min(1.0, float(self["importance_ratio"][t]))
            value, reward = float(self["value"][t]), self["reward"][t] / scale
            following = float(targets[t + 1])
            targets[t] = np.float32(
                (value + clipped * (reward - value)) + (clipped * discount) * following
            )
        return targets


def test_places_of_columns_agree_with_their_names() -> None:
    names = [FIXED_COLUMNS[place - COLUMNS] for place in (RATIO, VALUE, TARGET)]
    assert names == ["importance_ratio", "value", "value_target"]


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 80), st.booleans(), st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_early_stopped_sweeps_equal_full_ones(length, terminated, seed, rounds) -> None:
    """Over repeated feed-back, bits and all; small moves and unmoved steps among them."""
    rng = np.random.default_rng(seed)
    early = Episode(length, terminated, rng)
    settings_ = np.array([5.0, GAMMA, 1.7])
    early.full(settings_)
    for _ in range(rounds):
        chosen = sorted(set(rng.integers(0, length, rng.integers(1, 5)).tolist()), reverse=True)
        for t in chosen:
            early["value"][t] += rng.choice([0.0, 1e-7, 1e-3, 1.0]) * rng.normal()
            early["importance_ratio"][t] *= rng.choice([1.0, np.exp(rng.normal()), 1e-6])
        lowest = length
        for t in chosen:
            if t < lowest:
                lowest = sweep(early.table, 0, 0, t, settings_, True)
        wanted = early.naive(1.7, GAMMA)
        assert early["value_target"].tobytes() == wanted.tobytes()


def test_an_early_stop_saves_work_and_a_zero_ratio_ends_a_sweep() -> None:
    episode = Episode(50, True, np.random.default_rng(0))
    plan = np.array([5.0, GAMMA, 1.0])
    episode["importance_ratio"][:] = 1.0
    episode["importance_ratio"][[20, 40]] = 0.0, 0.5
    episode.full(plan)
    episode["value"][40] += 1.0
    assert sweep(episode.table, 0, 0, 40, plan, True) == 20
    assert episode["value_target"].tobytes() == episode.naive(1.0, GAMMA).tobytes()


def test_minus_zero_is_told_from_zero() -> None:
    """Both compare equal, but a full sweep would store the other bits."""
    episode = Episode(1, True, np.random.default_rng(0))
    episode["reward"][:] = 0.0
    episode["importance_ratio"][:] = 1.0
    episode["value"][:] = 0.0
    plan = np.array([5.0, 0.0, 1.0])
    episode["value_target"][0] = -0.0
    sweep(episode.table, 0, 0, 0, plan, True)
    assert episode["value_target"].tobytes() == episode.naive(1.0, 0.0).tobytes()
