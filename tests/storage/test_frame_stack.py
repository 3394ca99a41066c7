"""Stacks of frames, from an environment into single rows and back."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from gymnasium.wrappers import FrameStackObservation

import storage
from storage.errors import SchemaMismatchError
from tests.storage.stacked import Stacked, assert_same
from tests.storage.zoo import SPACES, spec

LENGTHS = (1, 2, 3, 4, 5, 9)
WAYS = [
    Stacked(size, padding, keys)
    for size, padding, keys in itertools.product((1, 4), ("zero", "repeat"), (1, 2))
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_episodes_show_what_the_environment_showed(tmp_path: Path, way: Stacked) -> None:
    """tianshou: 4 frames stored 4 times over; cpprb: short episodes, several images."""
    store = way.create(tmp_path / "store")
    with store.writer() as writer:
        for index, length in enumerate(LENGTHS):
            way.write(writer, way.frames(index, length), terminated=index % 2 == 0)
    for index, (episode, length) in enumerate(zip(store.iterate_episodes(), LENGTHS, strict=True)):
        frames = way.frames(index, length)
        expected = [way.shown(frames, t) for t in range(length + 1)]
        transitions = list(episode.transitions())
        assert len(transitions) == length
        for t, transition in enumerate(transitions):
            assert_same(transition.observation, expected[t])
            assert_same(transition.next_observation, expected[t + 1])
        for name in way.names:
            assert_same(episode.columns[name], frames[name])


def test_every_frame_is_stored_once(tmp_path: Path) -> None:
    """stable-baselines3: 63.5 GB asked for stacked images."""
    way = Stacked(keys=2)
    store = way.create(tmp_path / "store")
    with store.writer() as writer:
        for index in range(5):
            way.write(writer, way.frames(index, 7), terminated=True)
    assert store.n_steps == 35
    everything = np.concatenate([way.frames(index, 7)["observation.right"] for index in range(5)])
    assert_same(store.to_dask()["observation.right"].compute(), everything)
    assert store.to_xarray()["observation.left"].shape == (35 + 5, 3, 2)
    segment = store.segment(store.segments[0].id)
    assert segment.row_bytes("observation.left") == 6


def test_stacks_of_an_episode_are_read_only_and_share_their_frames(tmp_path: Path) -> None:
    way = Stacked()
    store = way.create(tmp_path / "store")
    with store.writer() as writer:
        way.write(writer, way.frames(0, 9), terminated=True)
    stacks = store.episode(0).observation
    assert stacks.shape == (10, 4, 3, 2)
    assert not stacks.flags.writeable
    assert np.shares_memory(stacks[3], stacks[6])


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_what_numpy_converts_is_cut_to_its_newest_frame_as_well(tmp_path: Path, dtype: Any) -> None:
    """Lists and strided arrays do not go through the kernel."""
    space = gym.spaces.Box(0, 100, (3, 2), dtype)
    store = storage.create(
        tmp_path / "store",
        spec(space, gym.spaces.Discrete(2)),
        frame_stack=3,
        first_stack_padding="zero",
    )
    shown = np.array([[0, 0], [0, 0], [1, 2], [3, 4], [5, 6]], dtype)
    step: dict[str, Any] = {"action": 0, "reward": 0.0, "terminated": False}
    with store.writer() as writer:
        writer.begin(0, shown[:3].tolist() if dtype == np.uint8 else shown[:3])
        writer.step(0, observation=np.asfortranarray(shown[1:4]), truncated=False, **step)
        writer.step(0, observation=shown[2:5], truncated=True, **step)
    episode = store.episode(0)
    assert_same(episode.columns["observation"], shown[2:])
    assert_same(episode.observation[2], shown[2:])


def test_only_the_stored_frame_must_be_finite_and_the_stack_must_fit(tmp_path: Path) -> None:
    space = gym.spaces.Box(-np.inf, np.inf, (2, 1), np.float64)
    store = storage.create(
        tmp_path / "store",
        spec(space, gym.spaces.Discrete(2)),
        frame_stack=2,
        first_stack_padding="repeat",
    )
    step: dict[str, Any] = {"action": 0, "reward": 0.0, "terminated": False, "truncated": False}
    with store.writer() as writer:
        writer.begin(0, np.array([[1.0], [1.0]]))
        for bad in ([[1.0], [np.nan]], [[np.inf]], [1.0]):
            with pytest.raises((storage.errors.NonFiniteError, SchemaMismatchError)):
                writer.step(0, observation=np.array(bad), **step)
        writer.step(0, observation=np.array([[1.0], [2.0]]), **step)
        assert_same(writer.open_rows(0)["observation"], np.array([[[1.0], [1]], [[1], [2]]]))
        assert writer.end(0).length == 1


@pytest.mark.parametrize("padding", ["zero", "repeat"])
@pytest.mark.parametrize("keys", [1, 2])
def test_a_first_stack_of_another_padding_is_refused(
    tmp_path: Path, padding: str, keys: int
) -> None:
    way = Stacked(4, padding, keys)
    other = Stacked(4, {"zero": "repeat", "repeat": "zero"}[padding], keys)
    store = way.create(tmp_path / "store")
    frames = way.frames(0, 5)
    with store.writer() as writer:
        for wrong in (other.shown(frames, 0), way.shown(frames, 2)):
            with pytest.raises(SchemaMismatchError, match=f"first_stack_padding='{padding}'"):
                writer.begin(0, wrong)
            assert writer.open_episode(0) is None
        way.write(writer, frames, terminated=True)
    assert store.n_episodes == 1


def test_an_open_episode_of_stacks_is_gone_on_with(tmp_path: Path) -> None:
    """A resumed run compares what its environment shows with what it showed."""
    way = Stacked(padding="repeat", keys=2)
    store = way.create(tmp_path / "store")
    frames = way.frames(0, 6)
    step: dict[str, Any] = {"action": 1, "reward": 0.0, "terminated": False}
    writer = store.writer(run="a")
    writer.begin(0, way.shown(frames, 0))
    for t in range(3):
        writer.step(0, observation=way.shown(frames, t + 1), truncated=False, **step)
    position = writer.position()
    rows = writer.open_rows(0)
    assert rows["action"].tolist() == [1, 1, 1]
    for t in range(4):
        for name in way.names:
            key = name.removeprefix("observation.")
            assert_same(rows[name][t], way.shown(frames, t)[key])
    writer.close()
    storage.rewind(store, position, "a")
    with store.writer(run="a", continue_from=position) as writer:
        for t in range(3, 6):
            writer.step(0, observation=way.shown(frames, t + 1), truncated=t == 5, **step)
    store.refresh()
    (episode,) = store.iterate_episodes()
    for t in range(7):
        for key, stack in way.shown(frames, t).items():
            assert_same(episode.observation[key][t], stack)


@pytest.mark.parametrize(("padding_type", "padding"), [("reset", "repeat"), ("zero", "zero")])
def test_a_gymnasium_environment_comes_back_as_it_was_shown(
    tmp_path: Path, padding_type: str, padding: str
) -> None:
    env = FrameStackObservation(gym.make("CartPole-v1"), 3, padding_type=padding_type)
    store = storage.create(
        tmp_path / "store",
        storage.EnvironmentSpec.from_env(env),
        frame_stack=3,
        first_stack_padding=padding,
    )
    shown = []
    with store.writer() as writer:
        for seed in range(3):
            observation, _ = env.reset(seed=seed)
            shown.append([observation])
            writer.begin(0, observation, seed=seed)
            record = None
            while record is None:
                action = np.int64((seed + len(shown[-1])) % 2)
                observation, reward, terminated, truncated, _ = env.step(action)
                shown[-1].append(observation)
                record = writer.step(
                    0,
                    action=action,
                    reward=reward,
                    observation=observation,
                    terminated=terminated,
                    truncated=truncated,
                )
    for episode, expected in zip(store.iterate_episodes(), shown, strict=True):
        assert episode.columns["observation"].shape == (len(expected), 4)
        assert_same(np.array(episode.observation), np.stack(expected))
    env.close()


def test_an_atari_game_comes_back_as_it_was_shown(tmp_path: Path) -> None:
    """A vector environment of one lane: the step after an end is the reset."""
    envs = AtariVectorEnv(
        game="breakout", num_envs=1, num_threads=1, max_num_frames_per_episode=60, noop_max=0
    )
    store = storage.create(
        tmp_path / "store",
        storage.EnvironmentSpec.from_env(envs),
        frame_stack=4,
        first_stack_padding="zero",
    )
    shown: list[list[np.ndarray]] = []
    rng = np.random.default_rng(0)
    with store.writer() as writer:
        observation, _ = envs.reset(seed=0)
        while len(shown) < 4:
            writer.begin(0, observation[0])
            shown.append([observation[0].copy()])
            record = None
            while record is None:
                actions = rng.integers(0, 4, 1)
                observation, reward, terminated, truncated, _ = envs.step(actions)
                shown[-1].append(observation[0].copy())
                record = writer.step(
                    0,
                    action=actions[0],
                    reward=float(reward[0]),
                    observation=observation[0],
                    terminated=bool(terminated[0]),
                    truncated=bool(truncated[0]),
                )
            observation, *_ = envs.step(actions)
    envs.close()
    for episode, expected in zip(store.iterate_episodes(), shown, strict=True):
        assert len(expected) > 5
        assert_same(np.array(episode.observation), np.stack(expected))


def test_whole_stacks_are_kept_where_nobody_says_that_they_are_stacks(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", spec(SPACES["stacks"], SPACES["discrete"]))
    assert store.schema.column("observation.camera").shape == (4, 6, 5)
