from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import storage
from storage.errors import (
    ActionOutOfBoundsError,
    ConfigError,
    NonFiniteError,
    SchemaMismatchError,
    UnsupportedSpaceError,
)
from storage.layout import Ending
from tests.storage.zoo import spec

BOX = spaces.Box(-2.0, 10.0, (2,), np.float32)
GOOD = {
    "action": np.array([0, 1], np.float32),
    "reward": 1.0,
    "observation": np.zeros(3),
    "terminated": False,
    "truncated": False,
}


@pytest.fixture
def store(tmp_path: Path) -> storage.Store:
    return storage.create(
        tmp_path / "store", spec(spaces.Box(-np.inf, np.inf, (3,), np.float64), BOX)
    )


def rows(store: storage.Store, name: str) -> list:
    store.refresh()
    return store.columns[name][:].tolist()


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"observation": np.array([0, np.nan, 0])}, NonFiniteError, "observation is not finite"),
        ({"observation": np.array([0, np.inf, 0])}, NonFiniteError, "lane 0, episode 0, step 1"),
        ({"reward": float("nan")}, NonFiniteError, "reward is not finite .* step 1"),
        ({"reward": float("-inf")}, NonFiniteError, "reward"),
        ({"action": np.array([np.nan, 0], np.float32)}, NonFiniteError, "action is not finite"),
        ({"raw_action": [np.inf, 0]}, NonFiniteError, "raw_action .* It is the policy's: look at"),
        ({"behaviour": [0, 0, np.nan, 1]}, NonFiniteError, "behaviour"),
        (
            {"action": np.array([-2.1, 0], np.float32)},
            ActionOutOfBoundsError,
            r"action \[-2.09.*\] at lane 0, episode 0, step 1 is outside Box\(-2.0, 10.0",
        ),
        ({"action": np.array([0, 10.001], np.float32)}, ActionOutOfBoundsError, "clip the action"),
        ({"observation": np.zeros(4)}, SchemaMismatchError, r"shape \(4,\).*shape \(3,\)"),
        ({"observation": np.float64(0)}, SchemaMismatchError, r"shape \(\)"),
        ({"action": np.zeros((1, 2))}, SchemaMismatchError, r"shape \(1, 2\)"),
        ({"action": np.array([0.1, 0.2])}, SchemaMismatchError, "float64 values .* as float32"),
        ({"observation": np.array(["a", "b", "c"])}, SchemaMismatchError, "dtype <U1"),
        ({"observation": np.zeros(4)}, SchemaMismatchError, "lane 0, episode 0, step 1: obs"),
        ({"observation": [[1, 2], 3]}, SchemaMismatchError, "lane 0, episode 0, step 1: obs"),
        ({"action": np.zeros(3)}, SchemaMismatchError, "lane 0, episode 0, step 1: action"),
        ({"raw_action": [1.0]}, SchemaMismatchError, "lane 0, episode 0, step 1: raw_action"),
        ({"raw_action": "x"}, SchemaMismatchError, "step 1: raw_action: 'x' is no array"),
        ({"behaviour": np.ones(3)}, SchemaMismatchError, "lane 0, episode 0, step 1: behaviour"),
        ({"reward": None}, SchemaMismatchError, "lane 0, episode 0, step 1: reward: None"),
        ({"reward": float("nan")}, NonFiniteError, "--loop.nonfinite=end_episode.*in Python"),
    ],
)
def test_bad_steps_are_refused_and_leave_nothing(
    store: storage.Store, change: dict, error: type, says: str
) -> None:
    with store.writer() as writer:
        writer.begin(0, np.zeros(3))
        writer.step(0, **GOOD)
        with pytest.raises(error, match=says):
            writer.step(0, **(GOOD | change))
        assert writer.open_episode(0).steps == 1
        writer.step(0, **(GOOD | {"reward": 3.0, "observation": np.ones(3)}))
        record = writer.end(0)
    assert (record.length, record.episode_return) == (2, 4.0)
    assert rows(store, "reward") == [1, 3, 0]
    assert rows(store, "observation") == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]


def test_an_end_after_a_refused_step_closes_with_the_last_good_observation(
    store: storage.Store,
) -> None:
    with store.writer() as writer:
        writer.begin(0, np.zeros(3))
        writer.step(0, **(GOOD | {"observation": np.full(3, 5.0)}))
        with pytest.raises(NonFiniteError):
            writer.step(0, **(GOOD | {"observation": np.full(3, np.nan)}))
        record = writer.end(0)
    assert (record.ending, record.length) == (Ending.CUT, 1)
    assert rows(store, "observation") == [[0, 0, 0], [5, 5, 5]]
    assert rows(store, "action") == [[0, 1], [0, 0]]
    assert rows(store, "truncated") == [True, False]
    assert rows(store, "kind") == [1, 2]
    file = store.paths.segment(0) / "observation" / "c.0.0"
    assert not np.fromfile(file, "<f8", offset=32768)[6:].any()


def test_end_episode_cuts_before_the_bad_step(store: storage.Store, caplog) -> None:
    bad = GOOD | {"observation": np.full(3, np.nan)}
    with store.writer(nonfinite="end_episode") as writer:
        writer.begin(0, np.zeros(3))
        writer.step(0, **GOOD)
        writer.step(0, **(GOOD | {"observation": np.ones(3)}))
        with caplog.at_level(logging.WARNING):
            record = writer.step(0, **bad)
        assert (record.ending, record.length) == (Ending.CUT, 2)
        assert "observation is not finite" in caplog.text
        assert "lane 0, episode 0, step 2" in caplog.text
        assert writer.open_episode(0) is None
        writer.begin(0, np.zeros(3))
        assert writer.step(0, **bad) is None
        assert writer.open_episode(0) is None
        assert writer.nonfinite_episodes == 2
        writer.begin(0, np.zeros(3))
        with pytest.raises(ActionOutOfBoundsError):
            writer.step(0, **(GOOD | {"action": np.array([11, 0], np.float32)}))
    assert rows(store, "truncated") == [False, True, False]
    assert rows(store, "observation") == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]


def test_a_first_observation_that_is_not_finite_begins_nothing(store: storage.Store) -> None:
    with store.writer(lanes=2) as writer:
        with pytest.raises(NonFiniteError, match="first observation of lane 1, episode 0"):
            writer.begin(1, np.array([0, np.nan, 0]))
        assert writer.open_episode(1) is None
        writer.begin(1, np.zeros(3))


@pytest.mark.parametrize(
    ("space", "good", "bad"),
    [
        (spaces.Discrete(5), [0, 2, 3], [5, -1]),
        (spaces.Discrete(4, start=-3), [-3, 0], [1, -4]),
        (spaces.MultiDiscrete([3, 2]), [np.array([2, 1])], [np.array([3, 0]), np.array([0, -1])]),
        (spaces.MultiBinary(2), [np.array([1, 0], np.int8)], [np.array([2, 0], np.int8)]),
    ],
)
def test_discrete_ranges(tmp_path: Path, space: spaces.Space, good: list, bad: list) -> None:
    """d3rlpy: the number of actions is the space's, not the data's."""
    store = storage.create(tmp_path / "store", spec(spaces.Discrete(2), space))
    step = {"reward": 0.0, "observation": 1, "terminated": False, "truncated": False}
    with store.writer() as writer:
        writer.begin(0, 0)
        for action in good:
            writer.step(0, **step, action=action)
        for action in bad:
            with pytest.raises(ActionOutOfBoundsError):
                writer.step(0, **step, action=action)
    reopened = storage.open(tmp_path / "store")
    assert reopened.env_spec.action_space == space
    np.testing.assert_array_equal(reopened.columns["action"][: len(good)], good)
    assert reopened.n_steps == len(good)


def test_exact_conversions_are_taken(tmp_path: Path) -> None:
    store = storage.create(
        tmp_path / "store", spec(spaces.Box(0, 255, (2,), np.uint8), spaces.Discrete(3))
    )
    with store.writer() as writer:
        writer.begin(0, [0, 255])
        step = {"reward": np.float32(0.5), "terminated": np.False_, "truncated": np.False_}
        writer.step(0, action=np.int32(2), observation=np.array([1.0, 2.0]), **step)
        writer.step(0, action=2.0, observation=np.array([3, 4], np.int64), **step)
        with pytest.raises(SchemaMismatchError, match="int64 values cannot be stored as uint8"):
            writer.step(0, action=2, observation=np.array([3, 256]), **step)
        with pytest.raises(SchemaMismatchError, match="action"):
            writer.step(0, action=0.5, observation=np.array([3, 4]), **step)
    assert rows(store, "observation") == [[0, 255], [1, 2], [3, 4]]
    assert rows(store, "action") == [2, 2, 0]


def test_given_arrays_are_neither_changed_nor_kept(store: storage.Store) -> None:
    action = np.array([1, 2], np.float32)
    observation = np.ones(3)
    with store.writer() as writer:
        writer.begin(0, observation)
        writer.step(0, **(GOOD | {"action": action, "observation": observation}))
        assert (action.tolist(), observation.tolist()) == ([1, 2], [1, 1, 1])
        observation[:] = 9
        action[:] = 9
    assert rows(store, "observation") == [[1, 1, 1], [1, 1, 1]]
    assert rows(store, "action") == [[1, 2], [0, 0]]


def test_a_first_observation_that_does_not_fit_is_placed(store: storage.Store) -> None:
    with (
        store.writer(lanes=2) as writer,
        pytest.raises(SchemaMismatchError, match="first observation of lane 1, episode 7: obs"),
    ):
        writer.begin(1, np.zeros(4), lane_episode=7)


def test_a_nested_value_that_does_not_fit_is_placed(tmp_path: Path) -> None:
    space = spaces.Dict({"x": spaces.Discrete(2), "y": spaces.Discrete(2)})
    store = storage.create(tmp_path / "store", spec(space, spaces.Discrete(2)))
    step = {"action": 1, "reward": 0.0, "terminated": False, "truncated": False}
    with store.writer() as writer:
        writer.begin(0, {"x": 0, "y": 1})
        with pytest.raises(SchemaMismatchError, match=r"step 0: no value .*observation\.y"):
            writer.step(0, **step, observation={"x": 0})


def test_many_episodes_that_are_not_finite_are_told_twice(store: storage.Store, caplog) -> None:
    with store.writer(nonfinite="end_episode") as writer:
        for _ in range(5):
            writer.begin(0, np.zeros(3))
            writer.step(0, **GOOD)
            writer.step(0, **(GOOD | {"reward": float("nan")}))
    first, last = [record.getMessage() for record in caplog.records]
    assert "lane 0, episode 0, step 1" in first
    assert "--nonfinite" not in first
    assert last.startswith("5 episodes ended before a step")


@pytest.mark.parametrize(
    "change",
    [
        {"lanes": 0},
        {"lanes": 1.5},
        {"lanes": True},
        {"row_budget": 0},
        {"row_budget": -1},
        {"window": 0},
        {"capacity": 0},
        {"capacity": -256},
        {"capacity": 1000},
        {"capacity": 256.0},
    ],
)
def test_impossible_writers(store: storage.Store, change: dict) -> None:
    (name,) = change
    with pytest.raises(ConfigError, match=f"{name}="):
        store.writer(**change)


@pytest.mark.parametrize("name", ["", "a/b", "..\\x", "a b", "\u00e9", "x" * 201])
def test_impossible_overlay_names(store: storage.Store, name: str) -> None:
    with pytest.raises(ConfigError, match="overlay name"):
        store.overlay(name, mode="r+")
    assert list(store.paths.overlays.iterdir()) == []


def test_a_column_name_that_no_folder_can_have(tmp_path: Path) -> None:
    names = ("k" * 189, "\u00e9" * 100)
    for name in names:
        space = spaces.Dict({name: spaces.Discrete(2)})
        with pytest.raises(UnsupportedSpaceError, match=r"name of 2.* bytes"):
            storage.create(tmp_path / "store", spec(space, spaces.Discrete(2)))
    space = spaces.Dict({"k" * 188: spaces.Discrete(2)})
    assert storage.create(tmp_path / "store", spec(space, spaces.Discrete(2))).n_rows == 0
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
