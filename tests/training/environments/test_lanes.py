from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from storage.errors import ConfigError, EnvironmentFaultError, SchemaMismatchError
from tests.training.zoo import Counting
from training.environments.lanes import EnvLanes
from training.environments.vector_lanes import VectorLanes

LENGTHS = (2, 3, 5)
MODES = tuple(AutoresetMode)


def _makers() -> list[Any]:
    return [partial(Counting, length) for length in LENGTHS]


def _play(lanes, steps: int) -> list[list[Any]]:
    """Everything seen, lane by lane: reset observations and transitions, seeds 100 * lane + n."""
    seen: list[list[Any]] = [[] for _ in range(lanes.n_lanes)]
    episodes = [0] * lanes.n_lanes

    def reset(lane: int) -> None:
        observation, _ = lanes.reset(lane, 100 * lane + episodes[lane])
        episodes[lane] += 1
        seen[lane].append(("reset", observation.tolist()))

    for lane in range(lanes.n_lanes):
        reset(lane)
    for step in range(steps):
        for first in range(0, lanes.n_lanes, lanes.stride):
            actions = [np.array([float(step)], np.float32)] * lanes.stride
            for offset, shown in enumerate(lanes.step(first, actions)):
                seen[first + offset].append(
                    (shown.observation.tolist(), shown.reward, shown.terminated, shown.truncated)
                )
                assert shown.info == {"at": int(shown.reward)}
                if shown.terminated or shown.truncated:
                    reset(first + offset)
    return seen


@pytest.mark.parametrize("mode", MODES)
def test_every_autoreset_mode_shows_the_same_episodes_as_separate_environments(mode):
    expected = _play(EnvLanes(_makers()), 30)
    vector = VectorLanes(SyncVectorEnv(_makers(), autoreset_mode=mode))
    assert _play(vector, 30) == expected
    assert expected[0][:4] == [
        ("reset", [0.0, 0.0]),
        ([0.0, 1.0], 1.0, False, False),
        ([0.0, 2.0], 2.0, False, True),
        ("reset", [1.0, 0.0]),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_processes_show_the_same_episodes(mode):
    vector = VectorLanes(AsyncVectorEnv(_makers(), autoreset_mode=mode))
    try:
        assert _play(vector, 8) == _play(EnvLanes(_makers()), 8)
    finally:
        vector.close()


class _HidesFinalObservation(SyncVectorEnv):
    def step(self, actions):
        *shown, infos = super().step(actions)
        return *shown, {key: value for key, value in infos.items() if "final" not in key}


def test_a_same_step_environment_without_final_observations_is_refused_naming_the_key():
    lanes = VectorLanes(_HidesFinalObservation(_makers(), autoreset_mode=AutoresetMode.SAME_STEP))
    with pytest.raises(SchemaMismatchError, match="final_obs"):
        _play(lanes, 5)


class _IgnoresMask(SyncVectorEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)


def test_a_vector_environment_that_ignores_reset_masks_is_refused():
    lanes = VectorLanes(_IgnoresMask(_makers()))
    with pytest.raises(SchemaMismatchError, match="reset_mask"):
        _play(lanes, 5)


def test_an_undeclared_autoreset_mode_is_refused():
    env = SyncVectorEnv(_makers())
    del env.metadata["autoreset_mode"]
    with pytest.raises(ConfigError, match="autoreset_mode"):
        VectorLanes(env)


def test_lanes_must_exist_and_agree_on_spaces():
    with pytest.raises(ConfigError, match="lanes is 0"):
        EnvLanes([])
    with pytest.raises(ConfigError, match="lane 1 has observation_space"):
        EnvLanes([Counting, lambda: gymnasium.make("Pendulum-v1")])


def test_dict_observations_survive_the_batching():
    class Nested(Counting):
        def __init__(self, length: int) -> None:
            super().__init__(length)
            self.observation_space = gymnasium.spaces.Dict(
                {
                    "arm": gymnasium.spaces.Box(-1e9, 1e9, (2,), np.float64),
                    "n": gymnasium.spaces.Discrete(9),
                }
            )

        def _observation(self):
            return {"arm": super()._observation(), "n": np.int64(self._step)}

    lanes = VectorLanes(
        SyncVectorEnv([partial(Nested, 2)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    )
    lanes.reset(0, 5)
    lanes.reset(1, 6)
    action = [np.zeros(1, np.float32)] * 2
    lanes.step(0, action)
    shown = lanes.step(0, action)
    assert shown[1].observation["arm"].tolist() == [6.0, 2.0]
    assert int(shown[1].observation["n"]) == 2


class _Leaves(Counting):
    """Calls sys.exit instead of stepping."""

    def step(self, action: Any) -> Any:
        raise SystemExit("bye")


def test_an_environment_that_exits_is_a_fault_of_its_lane():
    lanes = EnvLanes([partial(_Leaves, 5)])
    lanes.reset(0, 1)
    with pytest.raises(EnvironmentFaultError, match=r"step\(.*\) raised SystemExit: bye") as caught:
        lanes.step(0, [np.zeros(1, np.float32)])
    assert caught.value.lane == 0
