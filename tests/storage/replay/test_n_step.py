"""n-step returns against sums written out, and against a naive twin."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import storage
from storage.errors import ConfigError, SamplingError
from storage.replay import Batch, ReplayView
from storage.replay.n_step import NStep, NStepReturns
from tests.storage.replay.filler import Filler
from tests.storage.stacked import Stacked, assert_same
from tests.storage.zoo import spec


def by_observation(view: ReplayView, returns: Callable[[Batch], NStepReturns]) -> dict[float, Any]:
    """(return, next observation, discount, m) of every step of the window, by its observation."""
    found = {}
    for _ in range(100):
        batch = view.sample(view.n_steps)
        made = returns(batch)
        for i, seen in enumerate(batch.observation[:, 0].tolist()):
            found[seen] = (
                pytest.approx(float(made.reward[i]), abs=1e-12),
                float(made.observation[i, 0]),
                pytest.approx(float(made.discount[i]), abs=1e-12),
                int(made.steps[i]),
            )
    assert len(found) == view.n_steps
    return found


def test_three_step_returns_of_four_episodes(four: Filler) -> None:
    """CleanRL: tails never stored, or made of the next episode's rewards."""
    with four.view() as view:
        assert by_observation(view, NStep(view, n=3, discount=0.9)) == {
            0: (2.71, 3, 0.729, 3),
            1: (2.71, 4, 0.729, 3),
            2: (2.71, 5, 0, 3),
            3: (1.9, 5, 0, 2),
            4: (1.0, 5, 0, 1),
            100: (2.71, 103, 0.729, 3),
            101: (1.9, 103, 0.81, 2),
            102: (1.0, 103, 0.9, 1),
            200: (1.0, 201, 0, 1),
        }


def test_a_terminated_episode_ends_once(four: Filler) -> None:
    """Dopamine: one end made several terminal elements."""
    with four.view() as view:
        found = by_observation(view, NStep(view, n=1, discount=0.9))
        ends = {seen for seen, made in found.items() if made[2] == 0}
        assert ends == {4, 200}
        assert all(made[0] == 1.0 and made[3] == 1 for made in found.values())


def test_the_bootstrap_is_discounted_once_a_step(four: Filler) -> None:
    """FastTD3: a wrong power of gamma."""
    with four.view() as view:
        reward, _, discount, _ = by_observation(view, NStep(view, n=2, discount=0.9))[0]
        assert reward.expected + discount.expected * 1.0 == pytest.approx(2.71)


def test_a_long_n_takes_whole_episodes(four: Filler) -> None:
    with four.view() as view:
        found = by_observation(view, NStep(view, n=1000, discount=1.0))
        assert found[0] == (5.0, 5, 0, 5)
        assert found[101] == (2.0, 103, 1.0, 2)


def test_rows_behind_an_episode_change_nothing(filler: Callable[..., Filler]) -> None:
    """tianshou: returns over a partly filled ring read stale slots."""
    made = filler()
    made.episode(5, False, 0.0, 1.0)
    step = {"action": np.zeros(2, np.float32), "terminated": False, "truncated": False}
    made.writer.begin(0, np.array([1e9]))
    for t in range(4):
        made.writer.step(0, reward=1e9, observation=np.array([1e9 + 1 + t]), **step)
    with made.view() as view:
        found = by_observation(view, NStep(view, n=3, discount=0.9))
        assert [found[t] for t in (2, 3, 4)] == [
            (2.71, 5, 0.729, 3),
            (1.9, 5, 0.81, 2),
            (1.0, 5, 0.9, 1),
        ]
        made.writer.step(0, reward=1e9, observation=np.array([1e9 + 5]), **step)
        record = made.writer.end(0)
        assert record is not None
        assert record.length == 5
        view.advance()
        assert by_observation(view, NStep(view, n=3, discount=0.9))[2] == (2.71, 5, 0.729, 3)


def test_a_hundred_episodes_of_one_step(filler: Callable[..., Filler]) -> None:
    """d3rlpy: one-step episodes crash."""
    made = filler()
    for index in range(100):
        made.episode(1, index % 2 == 0, float(10 * index), float(index))
    with made.view() as view:
        found = by_observation(view, NStep(view, n=5, discount=0.5))
        for index in range(100):
            discount = 0 if index % 2 == 0 else 0.5
            assert found[10.0 * index] == (float(index), 10.0 * index + 1, discount, 1)


def test_steps_that_have_left_are_named(filler: Callable[..., Filler]) -> None:
    made = filler()
    made.episode(4, True, 0.0)
    with made.view(window=4) as view:
        returns = NStep(view)
        batch = view.sample(4)
        returns(batch)
        made.episode(6, True, 100.0)
        view.advance()
        with pytest.raises(SamplingError, match=r"4 of 4 .* position 0: segment 0, row \d"):
            returns(batch)
        assert returns(view.sample(4)).steps.max() <= 3


def test_batches_of_other_sizes_and_kept_copies(four: Filler) -> None:
    with four.view() as view:
        returns = NStep(view, n=2, discount=0.9)
        kept = view.sample(5).copy()
        before = returns(kept)
        reward, seen = before.reward.copy(), before.observation.copy()
        returns(view.sample(9))
        after = returns(kept)
        assert_same(after.reward, reward)
        assert_same(after.observation, seen)
        assert (after.reward.dtype, after.steps.dtype) == (np.float64, np.int64)


@pytest.mark.parametrize("bad", [{"n": 0}, {"n": 1.5}, {"discount": 1.1}, {"discount": np.nan}])
def test_impossible_settings_are_named(four: Filler, bad: dict[str, Any]) -> None:
    with four.view() as view, pytest.raises(ConfigError, match=next(iter(bad))):
        NStep(view, **bad)


def test_lives_matter_where_the_store_knows_them(four: Filler) -> None:
    with four.view() as view, pytest.raises(ConfigError, match="no column life_lost"):
        NStep(view, stop_at_life_loss=True)


def naive(
    rewards: list[float], over: list[bool], terminated: bool, t: int, n: int, gamma: float
) -> tuple[float, float, int]:
    """(return, discount, m) by looking at one reward after the other."""
    total, m = 0.0, 0
    for k in range(n):
        if t + k == len(rewards):
            break
        total += gamma**k * rewards[t + k]
        m = k + 1
        if over[t + k] or (terminated and t + k == len(rewards) - 1):
            return total, 0.0, m
    return total, gamma**m, m


EPISODES = st.lists(
    st.tuples(st.integers(1, 20), st.booleans(), st.integers(0, 2)), min_size=1, max_size=12
)


@settings(max_examples=25, deadline=None)
@given(
    episodes=EPISODES,
    n=st.integers(1, 25),
    gamma=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    lives=st.booleans(),
    window=st.sampled_from([1, 7, 10_000]),
    seed=st.integers(0, 99),
)
def test_any_episodes_equal_the_naive_twin(
    episodes: list[tuple[int, bool, int]],
    n: int,
    gamma: float,
    lives: bool,
    window: int,
    seed: int,
) -> None:
    """TorchRL: sums crossed trajectories, and indices ran out of the store."""
    rng = np.random.default_rng(seed)
    space = spec(spaces.Box(-np.inf, np.inf, (2,), np.float64), spaces.Discrete(2))
    with tempfile.TemporaryDirectory() as folder:
        store = storage.create(Path(folder) / "store", space, life_loss=True)
        expected = {}
        with store.writer(lanes=3) as writer:
            for index, (length, terminated, lane) in enumerate(episodes):
                rewards = rng.normal(size=length).tolist()
                over = (rng.random(length) < 0.2).tolist()
                writer.begin(lane, np.array([index, 0.0]))
                record = None
                for t in range(length):
                    record = writer.step(
                        lane,
                        action=0,
                        reward=rewards[t],
                        observation=np.array([index, t + 1.0]),
                        terminated=terminated and t == length - 1,
                        truncated=not terminated and t == length - 1,
                        life_lost=over[t],
                    )
                for t in range(length):
                    ends = over if lives else [False] * length
                    made = naive(rewards, ends, terminated, t, n, gamma)
                    expected[record.segment, record.start + t] = (index, t, *made)
        with ReplayView(store, window=window, private=True) as view:
            returns = NStep(view, n, gamma, stop_at_life_loss=lives)
            batch = view.sample(min(window, view.n_steps))
            made = returns(batch)
            for i, identity in enumerate(
                zip(batch.segment.tolist(), batch.row.tolist(), strict=True)
            ):
                index, t, total, discount, m = expected[identity]
                assert made.reward[i] == pytest.approx(total, rel=1e-12, abs=1e-12)
                assert made.discount[i] == pytest.approx(discount, rel=1e-12)
                assert made.steps[i] == m
                assert made.observation[i].tolist() == [index, t + m]
        store.close()


@pytest.mark.parametrize("padding", ["zero", "repeat"])
@pytest.mark.parametrize("keys", [1, 2])
def test_bootstrap_observations_are_stacks(tmp_path: Path, padding: str, keys: int) -> None:
    way = Stacked(4, padding, keys)
    store = way.create(tmp_path / "store")
    steps = {}
    with store.writer() as writer:
        for index, length in enumerate((1, 2, 3, 4, 5, 9)):
            frames = way.frames(index, length)
            record = way.write(writer, frames, terminated=index % 2 == 0)
            for t in range(length):
                steps[record.segment, record.start + t] = frames, t
    with ReplayView(store, window=100) as view:
        returns = NStep(view, n=3)
        batch = view.sample(24)
        made = returns(batch)
        for i, identity in enumerate(zip(batch.segment.tolist(), batch.row.tolist(), strict=True)):
            frames, t = steps[identity]
            stacks = way.shown(frames, t + int(made.steps[i]))
            if keys == 1:
                assert_same(made.observation[i], stacks)
            else:
                for key, stack in stacks.items():
                    assert_same(made.observation[key][i], stack)
