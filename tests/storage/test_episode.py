from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import storage
from tests.storage.zoo import F4, SPACES, spec


def test_episodes_have_one_more_observation_than_actions(f4: F4) -> None:
    """Minari: a long argument on alignment."""
    f4.writer.close()
    lengths = []
    for episode in f4.store.iterate_episodes():
        assert len(episode.observation) == len(episode.action) + 1 == len(episode) + 1
        lengths.append(len(list(episode.transitions())))
    assert lengths == [5, 3, 1, 4]


def test_flat_transitions_have_the_true_next_observation(f4: F4) -> None:
    """D4RL: next observation taken from the next trajectory; last step dropped."""
    flat = [t for episode in f4.store.iterate_episodes() for t in episode.transitions()]
    assert len(flat) == 9
    assert [float(t.next_observation[0]) for t in flat] == [1, 2, 3, 4, 5, 101, 102, 103, 201]
    assert [t.terminated for t in flat] == [False] * 4 + [True] + [False] * 3 + [True]
    assert [int(t.action) for t in flat] == [0, 1, 2, 3, 4, 0, 1, 2, 0]


def test_episode_indices(f4: F4) -> None:
    assert f4.store.episode(1).record.length == 3
    assert f4.store.episode(-1).record.length == 1
    for index in (3, -4):
        with pytest.raises(IndexError, match="which has 3"):
            f4.store.episode(index)
    with pytest.raises(KeyError, match="000007"):
        f4.store.segment(7)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("side", ["observation", "action"])
def test_samples_of_every_space_come_back_bit_equal(tmp_path: Path, name: str, side: str) -> None:
    """rllib: cannot read its own recording; d3rlpy, Minari: data changes on the way."""
    other = spaces.Discrete(2)
    space = SPACES[name]
    space.seed(0)
    observation, action = (space, other) if side == "observation" else (other, space)
    samples = [space.sample() for _ in range(7)]
    store = storage.create(tmp_path / "store", spec(observation, action))
    with store.writer() as writer:
        writer.begin(0, samples[0] if side == "observation" else 0)
        for t in range(6):
            writer.step(
                0,
                action=samples[t] if side == "action" else 1,
                observation=samples[t + 1] if side == "observation" else 1,
                reward=0.0,
                terminated=t == 5,
                truncated=False,
            )
    episode = storage.open(tmp_path / "store").episode(0)
    assert episode.record.length == 6
    moves = list(episode.transitions())
    if side == "observation":
        read = [move.observation for move in moves] + [moves[-1].next_observation]
    else:
        read = [move.action for move in moves]
    for expected, actual in zip(samples, read, strict=side == "observation"):
        assert_same(actual, expected)


def assert_same(actual: object, expected: object) -> None:
    if isinstance(expected, dict):
        assert list(actual) == list(expected)
        for key, value in expected.items():
            assert_same(actual[key], value)
    elif isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=True):
            assert_same(a, b)
    else:
        expected = np.asarray(expected)
        assert np.asarray(actual).dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


def test_columns_of_the_steps_are_attributes(tmp_path: Path) -> None:
    box = spaces.Box(-1.0, 1.0, (2,), np.float32)
    store = storage.create(tmp_path / "store", spec(spaces.Box(-9.0, 9.0, (1,), np.float32), box))
    with store.writer() as writer:
        writer.begin(0, np.zeros(1, np.float32))
        for t in range(3):
            writer.step(
                0,
                action=np.full(2, 0.5, np.float32),
                raw_action=np.full(2, t, np.float32),
                behaviour=np.array([t, 2 * t, 1, 1], np.float32),
                observation=np.ones(1, np.float32),
                reward=1.5,
                terminated=t == 2,
                truncated=False,
                policy_update=7 + t,
            )
    episode = store.episode(0)
    assert episode.raw_action.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert episode.behaviour.tolist() == [[0, 0, 1, 1], [1, 2, 1, 1], [2, 4, 1, 1]]
    assert episode.behaviour_kind.tolist() == [storage.BehaviourKind.GAUSSIAN] * 3
    assert episode.policy_update.tolist() == [7, 8, 9]
    assert repr(episode) == "<Episode 0 of segment 0: 3 steps, return 4.5, terminated>"


def test_a_column_that_the_store_lacks_is_named(f4: F4) -> None:
    with pytest.raises(AttributeError, match="no column 'raw_action'; it has observation, action"):
        _ = f4.store.episode(0).raw_action
    assert not hasattr(f4.store.episode(0), "raw_action")
