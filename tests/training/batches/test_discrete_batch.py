from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

import storage
from storage import EnvironmentSpec
from storage.errors import SchemaMismatchError
from training.batches.discrete_batch import DISCRETE_FIELDS, DiscreteBatch, DiscreteConverter
from training.batches.episode_batches import episode_batches
from training.scaling import ObservationScaling

STACK = 3
ACTIONS = gymnasium.spaces.Discrete(4, start=-1)
UNIFORM = np.full(4, 0.25, np.float32)
LENGTHS = (1, 2, 7, 300)


def spec(observation) -> EnvironmentSpec:
    return EnvironmentSpec("Test-v0", observation, ACTIONS)


def frame(episode: int, t: int) -> np.ndarray:
    return np.full((5, 6), 1 + (17 * episode + t) % 255, np.uint8)


def shown(episode: int, t: int) -> np.ndarray:
    """A stack of frames, zeros before the first."""
    empty = np.zeros((5, 6), np.uint8)
    return np.stack([frame(episode, s) if s >= 0 else empty for s in range(t - STACK + 1, t + 1)])


def vector(episode: int, t: int) -> np.ndarray:
    return np.array([episode, t], np.float32)


def filled(path, observation, show, **options) -> storage.Store:
    """Episodes whose rows are known: action t mod 4, reward t, a life lost each third step."""
    store = storage.create(path, spec(observation), life_loss=True, **options)
    with store.writer(window=512) as writer:
        for episode, length in enumerate(LENGTHS):
            writer.begin(0, show(episode, 0), seed=episode)
            for t in range(length):
                writer.step(
                    0,
                    action=np.int64(t % 4 - 1),
                    reward=float(t),
                    observation=show(episode, t + 1),
                    terminated=t + 1 == length and episode % 2 == 0,
                    truncated=t + 1 == length and episode % 2 == 1,
                    behaviour=UNIFORM,
                    behaviour_kind=2,
                    life_lost=t % 3 == 2,
                )
    store.refresh()
    return store


def stacked_store(path) -> storage.Store:
    space = gymnasium.spaces.Box(0, 255, (STACK, 5, 6), np.uint8)
    return filled(path, space, shown, frame_stack=STACK, first_stack_padding="zero")


def vector_store(path) -> storage.Store:
    return filled(path, gymnasium.spaces.Box(-1e9, 1e9, (2,), np.float32), vector)


def place(batch) -> list[tuple[int, int]]:
    """Episode and step of each drawn row."""
    firsts = np.cumsum([0, *(length + 1 for length in LENGTHS)])
    return [
        (int(e), int(row - firsts[e]))
        for row in batch.row
        for e in [np.searchsorted(firsts, row, side="right") - 1]
    ]


def converter(size: int, **options) -> DiscreteConverter:
    settings = {"frames": False, "life_loss_ends": True} | options
    return DiscreteConverter(ObservationScaling(size), ACTIONS, **settings)


def test_tensors_hold_the_batch(tmp_path):
    with vector_store(tmp_path / "s").replay(
        window=400, fields=[*DISCRETE_FIELDS, "life_lost"], seed=3
    ) as view:
        scaling = ObservationScaling(2)
        scaling.mean[:], scaling.stdev[:] = (1.0, 10.0), (2.0, 100.0)
        convert = DiscreteConverter(scaling, ACTIONS, frames=False, life_loss_ends=True)
        for _ in range(5):
            batch = view.sample(64)
            tensors = convert(batch)
            assert isinstance(tensors, DiscreteBatch)
            for i, (episode, t) in enumerate(place(batch)):
                before, after = ([(episode - 1) / 2, (s - 10) / 100] for s in (t, t + 1))
                assert tensors.observation[i].tolist() == pytest.approx(before)
                assert tensors.next_observation[i].tolist() == pytest.approx(after)
                assert (tensors.action[i], tensors.reward[i]) == (t % 4, t)
                ended = t + 1 == LENGTHS[episode] and episode % 2 == 0
                assert tensors.continuing[i] == (not (ended or t % 3 == 2))
            assert (tensors.behaviour == 0.25).all()
            assert (tensors.sampling_weight == 1).all()
            assert tensors.action.dtype == torch.int64


def test_a_lost_life_is_passed_over_where_it_ends_nothing(tmp_path):
    with vector_store(tmp_path / "s").replay(
        window=400, fields=[*DISCRETE_FIELDS, "life_lost"], seed=3
    ) as view:
        batch = view.sample(64)
        continuing = converter(2, life_loss_ends=False)(batch).continuing
        assert continuing.tolist() == (1 - batch.terminated).tolist()


def test_stacks_are_the_batchs_own_memory(tmp_path):
    with stacked_store(tmp_path / "s").replay(window=400, fields=DISCRETE_FIELDS, seed=1) as view:
        convert = converter(0, frames=True)
        for _ in range(3):
            batch = view.sample(32)
            tensors = convert(batch)
            assert tensors.observation.dtype == torch.uint8
            assert tensors.observation.data_ptr() == batch.observation.ctypes.data
            assert tensors.next_observation.data_ptr() == batch.next_observation.ctypes.data
            for i, (episode, t) in enumerate(place(batch)):
                assert np.array_equal(tensors.observation[i], shown(episode, t))
                assert np.array_equal(tensors.next_observation[i], shown(episode, t + 1))


def test_frames_without_a_common_memory_are_taken_as_they_are(tmp_path):
    with stacked_store(tmp_path / "s").replay(window=400, fields=DISCRETE_FIELDS, seed=1) as view:
        batch = view.sample(8).copy()
        tensors = converter(0, frames=True)(batch)
        assert np.array_equal(tensors.observation, batch.observation)
        assert np.array_equal(tensors.next_observation, batch.next_observation)


def test_behaviours_that_are_none_are_refused(tmp_path):
    with vector_store(tmp_path / "s").replay(window=400, fields=DISCRETE_FIELDS) as view:
        for spoil in (
            lambda batch: batch.behaviour_kind.__setitem__(3, 0),
            lambda batch: batch.behaviour.__setitem__(3, np.nan),
            lambda batch: batch.behaviour.__setitem__((3, batch.action[3] + 1), 0.0),
        ):
            batch = view.sample(16).copy()
            converter(2)(batch)
            spoil(batch)
            row = rf"segment {batch.segment[3]}, row {batch.row[3]}\) has"
            with pytest.raises(SchemaMismatchError, match=row):
                converter(2)(batch)


def test_batches_of_another_environment_are_refused(tmp_path):
    with vector_store(tmp_path / "s").replay(window=400, fields=DISCRETE_FIELDS) as view:
        batch = view.sample(16)
        with pytest.raises(SchemaMismatchError, match=r"observation has shape \(16, 2\)"):
            converter(3)(batch)
        other = gymnasium.spaces.Discrete(5)
        convert = DiscreteConverter(
            ObservationScaling(2), other, frames=False, life_loss_ends=False
        )
        with pytest.raises(SchemaMismatchError, match=r"behaviour has shape \(16, 4\)"):
            convert(batch)


@pytest.mark.parametrize("make", [vector_store, stacked_store])
def test_an_episodes_batches_are_what_draws_would_give(tmp_path, make):
    store = make(tmp_path / "s")
    show = shown if make is stacked_store else vector
    for number, episode in enumerate(store.iterate_episodes()):
        batches = list(episode_batches(episode))
        assert [len(batch) for batch in batches] == ([256, 44] if number == 3 else [len(episode)])
        t = 0
        for batch in batches:
            for i in range(len(batch)):
                assert np.array_equal(batch.observation[i], show(number, t))
                assert np.array_equal(batch.next_observation[i], show(number, t + 1))
                assert (batch.action[i], batch.reward[i]) == (t % 4 - 1, t)
                assert batch.row[i] == episode.record.start + t
                assert batch.terminated[i] == (t + 1 == len(episode) and number % 2 == 0)
                assert batch.extra["life_lost"][i] == (t % 3 == 2)
                t += 1
            assert batch.behaviour.tolist() == [[0.25] * 4] * len(batch)
            assert batch.segment.tolist() == [episode.record.segment] * len(batch)
            assert (batch.sampling_weight == 1).all()
        assert t == len(episode)


def test_nested_spaces_are_laid_out_like_draws(tmp_path):
    box = gymnasium.spaces.Box(-1e9, 1e9, (2,), np.float32)
    space = gymnasium.spaces.Dict({"left": box, "right": box})
    store = filled(
        tmp_path / "s", space, lambda e, t: {"left": vector(e, t), "right": -vector(e, t)}
    )
    episode = next(iter(store.iterate_episodes()))
    batch = next(iter(episode_batches(episode)))
    with store.replay(window=400, fields=DISCRETE_FIELDS) as view:
        assert list(batch.observation) == list(view.sample(1).observation) == ["left", "right"]
    assert batch.next_observation["right"].tolist() == [[0, -1]]
