from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import storage
from storage.errors import EnvironmentFaultError
from tests.training.tiny import tiny_config
from training.acting.policy import RandomPolicy
from training.assembly import make_lanes
from training.collector import Collector
from training.config import EnvironmentConfig, LoopConfig, RunConfig, WrapperConfig
from training.environments.atari_settings import AtariSettings
from training.environments.atari_vector import AtariVector, atari_vector
from training.environments.environment import describe_recorded, make_environment
from training.environments.lanes import EnvLanes, Lanes
from training.environments.vector_lanes import VectorLanes

BREAKOUT = EnvironmentConfig(
    "Atari/Breakout", {"noop_max": 20, "sticky": 0.25, "max_frames": 160, "screen": 42}
)
"""Episodes of 40 steps, of which seeds make a difference."""
LANES = 3


def _lanes(kind: str) -> Lanes:
    makers = [partial(make_environment, BREAKOUT)] * LANES
    disabled = AutoresetMode.DISABLED
    return {
        "serial": lambda: EnvLanes(makers),
        "one vector": lambda: VectorLanes(AtariVector("Breakout", _settings(), LANES)),
        "vector of games": lambda: VectorLanes(SyncVectorEnv(makers, autoreset_mode=disabled)),
        "processes": lambda: VectorLanes(AsyncVectorEnv(makers, autoreset_mode=disabled)),
    }[kind]()


def _settings() -> AtariSettings:
    return AtariSettings(**BREAKOUT.kwargs)


def _collected(path: Any, lanes: Lanes, steps: int = 270) -> str:
    """Content hash of a store; the lanes' episodes end at the same steps, and are cut at others."""
    spec, recording = describe_recorded(BREAKOUT)
    store = storage.create(
        path, spec, frame_stack=4, first_stack_padding="zero", life_loss=recording.life_loss
    )
    with store, store.writer(lanes=LANES) as writer:
        policy = RandomPolicy(spec.action_space, seed=3)
        collector = Collector(lanes, writer, policy, seed=3, life_loss=True)
        while collector.steps < steps:
            collector.advance()
    lanes.close()
    return storage.content_hash(path)


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What separate games in this process store."""
    return _collected(tmp_path_factory.mktemp("serial") / "store", _lanes("serial"))


@pytest.mark.parametrize("kind", ["one vector", "vector of games", "processes"])
def test_lanes_of_every_kind_store_the_same(tmp_path, serial, kind):
    assert _collected(tmp_path / "other", _lanes(kind)) == serial
    store = storage.open(tmp_path / "other")
    assert len(store.episodes) == 9
    kept = store.columns["observation"]
    assert kept.shape[1:] == (42, 42)


def test_other_seeds_are_seen(tmp_path):
    """Or the test above would say nothing."""
    lanes = _lanes("one vector")
    first = [lanes.reset(0, seed)[1]["episode_frame_number"] for seed in range(5)]
    assert len(set(first)) > 1
    lanes.close()


def test_a_masked_reset_leaves_the_other_games_alone():
    games = AtariVector("Breakout", _settings(), 2)
    games.reset(seed=[1, 2])
    for _ in range(3):
        shown, *_ = games.step(np.array([1, 1]))
    mask = np.array([False, True])
    again, infos = games.reset(seed=[None, 5], options={"reset_mask": mask})
    np.testing.assert_array_equal(again[0], shown[0])
    assert not again[1, :3].any()
    assert infos["lives"].tolist() == [5, 5]
    assert infos["episode_frame_number"][0] > 12 - 1


def test_an_action_that_a_game_lacks_is_a_fault():
    lanes = _lanes("one vector")
    for lane in range(LANES):
        lanes.reset(lane, lane)
    with pytest.raises(EnvironmentFaultError, match="a game has 0 to 3"):
        lanes.step(0, [0, 1, 4])


@pytest.mark.parametrize(
    ("kind", "wrappers", "inner"),
    [
        ("sync", [], AtariVector),
        ("sync", [WrapperConfig("TimeLimit", {"max_episode_steps": 5})], SyncVectorEnv),
        ("async", [], AsyncVectorEnv),
    ],
)
def test_a_runs_sync_lanes_are_one_vector_unless_games_are_wrapped(kind, wrappers, inner):
    config = RunConfig(
        EnvironmentConfig("Atari/pong", {"stack": 2}, wrappers),
        loop=LoopConfig(lanes=2, lane_kind=kind),
    )
    lanes = make_lanes(config)
    assert isinstance(lanes._env, inner)
    assert lanes.observation_space.shape == (2, 84, 84)
    assert lanes.n_lanes == 2
    lanes.close()


def test_other_environments_are_no_games():
    assert atari_vector(tiny_config().environment, 2) is None
    assert atari_vector(EnvironmentConfig("ALE/Pong-v5"), 2) is None
