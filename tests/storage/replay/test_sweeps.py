"""Sweeps of a batch's episodes, two at a time, against plain recursions of each alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.replay.sweeps import sweep_touched
from storage.replay.tables import EPISODE_FIELDS, LENGTH, SEGMENT, START
from tests.storage.replay.test_targets import GAMMA, Episode

SCALE = 1.7
SETTINGS = np.array([5.0, GAMMA, SCALE])


def _side_by_side(episodes: list[Episode]) -> tuple[np.ndarray, np.ndarray]:
    """Tables of episodes and segments, one segment an episode."""
    table = np.zeros((len(episodes), EPISODE_FIELDS), np.int64)
    for slot, episode in enumerate(episodes):
        table[slot, [SEGMENT, START, LENGTH]] = slot, 0, episode.length
    return table, np.concatenate([episode.table for episode in episodes])


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=7),
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
)
def test_every_episode_ends_as_if_swept_alone(shapes, seed, rounds) -> None:
    """Repeated feed-back at random steps, several of one episode and repeated ones among them."""
    rng = np.random.default_rng(seed)
    episodes = [Episode(length, terminated, rng) for length, terminated in shapes]
    for episode in episodes:
        episode.full(SETTINGS)
    table, segments = _side_by_side(episodes)
    for _ in range(rounds):
        slots = rng.integers(0, len(episodes), rng.integers(0, 12))
        keys = np.zeros(len(slots), np.int64)
        for i, slot in enumerate(slots):
            t = rng.integers(0, episodes[slot].length)
            keys[i] = slot << 32 | t
            episodes[slot]["value"][t] += rng.choice([0.0, 1e-7, 1e-3, 1.0]) * rng.normal()
            episodes[slot]["importance_ratio"][t] *= rng.choice([1.0, np.exp(rng.normal()), 1e-6])
        keys.sort()
        sweep_touched(table, segments, keys, SETTINGS)
        for episode in episodes:
            assert episode["value_target"].tobytes() == episode.naive(SCALE, GAMMA).tobytes()


def test_what_no_step_of_the_batch_can_have_changed_is_left_alone() -> None:
    rng = np.random.default_rng(0)
    episodes = [Episode(30, True, rng) for _ in range(3)]
    for episode in episodes:
        episode.full(SETTINGS)
    table, segments = _side_by_side(episodes)
    marks = [(0, 21), (1, 29), (2, 5)]
    for slot, t in marks:
        episodes[slot]["value_target"][t] = 99.0
    sweep_touched(table, segments, np.array([20, 1 << 32 | 28], np.int64), SETTINGS)
    assert [float(episodes[slot]["value_target"][t]) for slot, t in marks] == [99.0] * 3
