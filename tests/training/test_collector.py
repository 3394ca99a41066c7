from __future__ import annotations

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import storage
from storage import Ending, EnvironmentSpec
from storage.errors import NonFiniteError
from tests.training.zoo import Counting, Drift
from training.acting.policy import PolicyStep
from training.collector import Collector, reset_seed
from training.environments.lanes import EnvLanes
from training.environments.vector_lanes import VectorLanes


class StepNumbers:
    """Acts with the number of the environment step; V(s) = 10 * the second observation number."""

    def begin(self, lane, steps):
        pass

    def act(self, lane, step_index, observation, *, greedy=False):
        action = np.array([step_index % 10], np.float32)
        behaviour = np.array([0.0, 1.0], np.float32)
        return PolicyStep(action, action, behaviour, 1, 10.0 * float(observation[1]))

    def value(self, observation):
        return 10.0 * float(observation[1])


def _collect(path, lanes, steps: int, **settings):
    env = Counting()
    spec = EnvironmentSpec("Counting", env.observation_space, env.action_space)
    with (
        storage.create(path, spec) as store,
        store.writer(lanes=lanes.n_lanes, **settings) as writer,
    ):
        collector = Collector(lanes, writer, StepNumbers(), seed=7)
        finished = []
        while collector.steps < steps:
            finished += collector.advance()
    return finished


def _makers(lengths):
    return [partial(Counting, length) for length in lengths]


def test_an_episode_is_stored_as_it_was_lived(tmp_path):
    lanes = EnvLanes(_makers([3]))
    finished = _collect(tmp_path / "s", lanes, 7)
    assert [each.record.length for each in finished] == [3, 3]
    seed = reset_seed(7, 0, 1)
    assert (finished[1].record.seed, finished[1].record.lane_episode) == (seed, 1)
    assert finished[1].values.tolist() == [0.0, 10.0, 20.0, 30.0]
    assert finished[1].values.dtype == np.float32
    store = storage.open(tmp_path / "s")
    episode = store.episode(1)
    assert np.asarray(episode.observation)[:, 1].tolist() == [0, 1, 2, 3]
    assert np.asarray(episode.observation)[:, 0].tolist() == [float(seed % 1_000_000)] * 4
    given = [float(action[0]) for action in lanes.environments[0].actions]
    stored = np.concatenate([np.asarray(store.episode(i).action)[:, 0] for i in range(3)])
    assert stored.tolist() == given == [0, 1, 2, 3, 4, 5, 6]
    assert store.episode(2).record.ending == Ending.CUT


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_lanes_of_lengths_2_3_5_give_the_same_store_in_every_autoreset_mode(tmp_path, kind, mode):
    """Thirty vector steps; no dummy step is stored, next observations are the true final ones."""
    lengths = (2, 3, 5)
    _collect(tmp_path / "a", EnvLanes(_makers(lengths)), 90)
    vector = VectorLanes(kind(_makers(lengths), autoreset_mode=mode))
    _collect(tmp_path / "b", vector, 90)
    vector.close()
    assert storage.content_hash(tmp_path / "a") == storage.content_hash(tmp_path / "b")
    store = storage.open(tmp_path / "b")
    assert store.n_steps == 90
    for episode in store.iterate_episodes():
        observation = np.asarray(episode.observation)
        assert observation[:, 1].tolist() == list(range(len(observation)))
        assert len(set(observation[:, 0].tolist())) == 1


class Poisoned(Counting):
    """Its third step is not a number."""

    def step(self, action):
        observation, *rest = super().step(action)
        if self._step == 3:
            observation[1] = np.nan
        return observation, *rest


def test_nan_is_refused_with_lane_episode_and_step(tmp_path):
    with pytest.raises(NonFiniteError, match="lane 0, episode 0, step 2"):
        _collect(tmp_path / "s", EnvLanes([partial(Poisoned, 9)]), 10)
    assert [e.record.length for e in storage.open(tmp_path / "s").iterate_episodes()] == [2]


def test_nan_may_end_the_episode_before_it(tmp_path):
    finished = _collect(
        tmp_path / "s", EnvLanes([partial(Poisoned, 9)]), 9, nonfinite="end_episode"
    )
    assert [each.record.length for each in finished] == [2, 2, 2]
    assert finished[0].values.tolist() == [0.0, 10.0, 20.0]
    assert {each.record.ending for each in finished} == {Ending.CUT}


class Rotten(Counting):
    """Its first step is not a number."""

    def step(self, action):
        observation, *rest = super().step(action)
        return observation * np.nan, *rest


def test_an_episode_whose_first_step_is_nan_is_begun_anew(tmp_path):
    finished = _collect(tmp_path / "s", EnvLanes([Rotten]), 4, nonfinite="end_episode")
    assert finished == []
    assert storage.open(tmp_path / "s").n_episodes == 0


def test_a_full_segment_cuts_the_episode_and_resets(tmp_path):
    lanes = EnvLanes([partial(Counting, 10**6)])
    finished = _collect(tmp_path / "s", lanes, 600, capacity=256)
    assert [each.record.length for each in finished] == [255, 255]
    assert finished[1].values[[0, -1]].tolist() == [0.0, 2550.0]


def test_every_reset_seed_is_derived_and_the_generator_alone_decides(tmp_path):
    env = Drift()
    spec = EnvironmentSpec("Drift", env.observation_space, env.action_space)

    class Still:
        def begin(self, lane, steps):
            pass

        def act(self, lane, step_index, observation, *, greedy=False):
            return PolicyStep(np.zeros(2, np.float32), None, None, 0, None)

        def value(self, observation):
            return None

    with storage.create(tmp_path / "s", spec, behaviour="unknown") as store:
        with store.writer() as writer:
            collector = Collector(EnvLanes([Drift]), writer, Still(), seed=3)
            finished = []
            while len(finished) < 3:
                finished += collector.advance()
        assert finished[0].values is None
        seeds = [each.record.seed for each in finished]
        assert seeds == [reset_seed(3, 0, number) for number in range(3)]
        assert len(set(seeds)) == 3
        for number, seed in enumerate(seeds):
            first, _ = gymnasium.Wrapper(Drift()).reset(seed=seed)
            assert np.array_equal(np.asarray(store.episode(number).observation)[0], first)


class Greedy(Counting):
    """Changes its action, and goes on showing one observation array that it writes into."""

    def __init__(self, length: int = 4, buffer: np.ndarray | None = None):
        super().__init__(length)
        self.buffer = np.zeros(2) if buffer is None else buffer

    def step(self, action):
        shown = super().step(action)
        action[...] = 9.5
        return shown

    def _observation(self):
        self.buffer[:] = super()._observation()
        return self.buffer


class Recording(StepNumbers):
    """Keeps the observations that it saw when it was asked."""

    def __init__(self):
        self.seen: list[list[float]] = []

    def begin(self, lane, steps):
        pass

    def act(self, lane, step_index, observation, *, greedy=False):
        self.seen.append([lane, *observation.tolist()])
        return super().act(lane, step_index, observation)


@pytest.mark.parametrize("vector", [False, True])
def test_an_environment_may_change_its_action_and_what_it_showed(tmp_path, vector):
    if vector:
        lanes = VectorLanes(SyncVectorEnv([Greedy] * 2))
    else:
        lanes = EnvLanes([partial(Greedy, buffer=np.zeros(2))] * 2)  # one for both
    env = Counting()
    spec = EnvironmentSpec("Counting", env.observation_space, env.action_space)
    policy = Recording()
    with storage.create(tmp_path / "s", spec) as store, store.writer(lanes=2) as writer:
        collector = Collector(lanes, writer, policy, seed=7)
        while collector.steps < 16:
            collector.advance()
    with storage.open(tmp_path / "s") as store:
        for lane in range(2):
            episodes = [store.episode(2 * lane + number) for number in range(2)]
            actions = np.concatenate([np.asarray(each.action)[:, 0] for each in episodes])
            assert actions.tolist() == [step % 10 for step in range(lane, 16, 2)]
            shown = [row for each in episodes for row in np.asarray(each.observation)[:4].tolist()]
            assert shown == [row for at, *row in policy.seen if at == lane]
            seeds = [reset_seed(7, lane, number) % 1_000_000 for number in (0, 1)]
            assert [row[0] for row in shown] == [seeds[0]] * 4 + [seeds[1]] * 4


class NestedActions(Greedy):
    def __init__(self, length: int = 4):
        super().__init__(length)
        self.arm = self.action_space
        self.action_space = gymnasium.spaces.Dict(
            {"arm": self.arm, "on": gymnasium.spaces.Tuple([self.arm])}
        )

    def step(self, action):
        shown = super().step(action["arm"])
        action["on"][0][...] = 9.5
        action["arm"] = None
        return shown


def test_nested_actions_are_stored_as_the_policy_chose_them(tmp_path):
    env = NestedActions()
    spec = EnvironmentSpec("Nested", env.observation_space, env.action_space)

    class Still:
        def begin(self, lane, steps):
            pass

        def act(self, lane, step_index, observation, *, greedy=False):
            part = np.array([step_index], np.float32)
            return PolicyStep({"arm": part, "on": (part + 1,)}, None, None, 0, None)

        def value(self, observation):
            return None

    with storage.create(tmp_path / "s", spec, behaviour="unknown") as store:
        with store.writer() as writer:
            collector = Collector(EnvLanes([NestedActions]), writer, Still(), seed=3)
            while collector.steps < 4:
                collector.advance()
        assert store.columns["action.arm"][:4].ravel().tolist() == [0, 1, 2, 3]
        assert store.columns["action.on.0"][:4].ravel().tolist() == [1, 2, 3, 4]


class Remembering(Counting):
    """Is rewarded by how far its action is from the one before, which it keeps without a copy."""

    last = None

    def step(self, action):
        observation, _, *rest = super().step(action)
        moved = 0.0 if self.last is None else float(action[0] - self.last[0])
        self.last = action
        return observation, moved, *rest


def test_an_environment_of_a_vector_may_keep_its_last_action(tmp_path):
    lanes = VectorLanes(SyncVectorEnv([partial(Remembering, 99)]))
    _collect(tmp_path / "s", lanes, 5)
    with storage.open(tmp_path / "s") as store:
        assert store.columns["reward"][:5].tolist() == [0, 1, 1, 1, 1]
