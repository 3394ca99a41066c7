"""Moments of the window against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

import storage
from storage.replay import ReplayView


@pytest.mark.parametrize("lengths", [(1,), (1, 1, 1), (300, 2, 700), (256, 512, 1)])
def test_moments_equal_numpy(filler, lengths) -> None:
    made = filler(width=3)
    for index, length in enumerate(lengths):
        made.episode(length, index % 2 == 0)
    got = made.view().statistics()
    steps = np.array([made.observations[identity] for identity in made.rewards])
    rewards = np.array(list(made.rewards.values()))
    np.testing.assert_allclose(got.mean, steps.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(got.variance, steps.var(axis=0), rtol=1e-10, atol=1e-15)
    assert got.reward_second_moment == pytest.approx(np.mean(rewards**2), rel=1e-12)
    assert got.n == sum(lengths)


def test_a_large_mean_does_not_swallow_the_variance(filler) -> None:
    made = filler()
    made.episode(400, first=1e9)
    got = made.view().statistics()
    assert got.variance[0] == pytest.approx((400**2 - 1) / 12, rel=1e-9)


def test_nested_spaces_and_what_is_no_float(tmp_path) -> None:
    space = spaces.Dict(
        {
            "arm": spaces.Box(-9, 9, (2,), np.float32),
            "frame": spaces.Box(0, 255, (4, 4), np.uint8),
            "gear": spaces.Discrete(3, start=1),
        }
    )
    spec = storage.EnvironmentSpec("Nested-v0", space, spaces.Discrete(2))
    store = storage.create(tmp_path / "store", spec)
    rng = np.random.default_rng(0)

    def observe():
        return {
            "arm": rng.normal(size=2).astype(np.float32),
            "frame": rng.integers(0, 255, (4, 4)).astype(np.uint8),
            "gear": int(rng.integers(1, 4)),
        }

    seen = [observe()]
    with store.writer() as writer:
        writer.begin(0, seen[0])
        for t in range(6):
            seen.append(observe())
            writer.step(
                0,
                action=t % 2,
                reward=1.0,
                observation=seen[-1],
                terminated=t == 5,
                truncated=False,
            )
    view = ReplayView(store, window=10)
    got = view.statistics()
    arms = np.array([observation["arm"] for observation in seen[:6]], np.float64)
    np.testing.assert_allclose(got.mean["arm"], arms.mean(axis=0))
    np.testing.assert_allclose(got.variance["arm"], arms.var(axis=0))
    assert got.mean["frame"].tolist() == np.zeros((4, 4)).tolist()
    assert got.variance["gear"] == 1.0

    batch = view.sample(6)
    assert set(batch.observation) == {"arm", "frame", "gear"}
    assert batch.observation["frame"].dtype == np.uint8
    for i in range(6):
        t = int(batch.row[i])
        assert batch.observation["arm"][i].tolist() == seen[t]["arm"].tolist()
        assert batch.next_observation["frame"][i].tolist() == seen[t + 1]["frame"].tolist()
        assert batch.observation["gear"][i] == seen[t]["gear"]
        assert batch.action[i] == t % 2
    assert not batch.has("raw_action")
    kept = batch.copy()
    gears = batch.observation["gear"].tolist()
    view.sample(6)
    assert kept.observation["gear"].tolist() == gears
