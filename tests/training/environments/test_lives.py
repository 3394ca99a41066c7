from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest

import storage
from storage.errors import EnvironmentFaultError
from storage.position import StorePosition
from tests.training.frames import StrictFrames
from training.acting.policy import RandomPolicy
from training.collector import Collector
from training.environments.environment import describe_recorded
from training.environments.environment_config import EnvironmentConfig
from training.environments.lanes import EnvLanes
from training.environments.lives import Lives


def test_only_a_fall_is_a_loss():
    lives = Lives(2)
    lives.begin(1, {"lives": 1})
    lives.begin(0, {"lives": 3})
    counts = [3, 2, 2, 4, 3, 1, 0]
    lost = [lives.lost(0, {"lives": np.int32(left)}) for left in counts]
    assert lost == [False, True, False, False, True, True, True]
    assert lives.left == [0, 1]
    assert not lives.lost(1, {"lives": 1})


@pytest.mark.parametrize("info", [{}, {"lives": None}, {"at": 1}])
def test_an_info_without_lives_is_a_fault_of_the_lane(info):
    with pytest.raises(EnvironmentFaultError, match="no number 'lives'") as raised:
        Lives(2).begin(1, info)
    assert raised.value.lane == 1


def _spec(**kwargs):
    config = EnvironmentConfig("tests.training.frames.StrictFrames", kwargs)
    spec, recording = describe_recorded(config)
    return spec, dataclasses.asdict(recording)


def _collector(store, writer, lanes=2):
    makers = [partial(StrictFrames, longest=40)] * lanes
    policy = RandomPolicy(store.env_spec.action_space, seed=5)
    return Collector(EnvLanes(makers), writer, policy, seed=5, life_loss=True)


def _advance(collector, steps):
    while collector.steps < steps:
        collector.advance()


def test_the_column_marks_the_steps_that_lost_a_life(tmp_path):
    spec, recording = _spec(longest=40)
    with storage.create(tmp_path / "s", spec, **recording) as store:
        with store.writer(lanes=2) as writer:
            _advance(_collector(store, writer), 200)
        store.refresh()
        kind, action, lost = (store.columns[name][:] for name in ("kind", "action", "life_lost"))
        np.testing.assert_array_equal(lost, (kind == 1) & (action == 0))
        assert lost.sum() > 40


def test_a_life_lost_right_after_a_resume_is_seen(tmp_path):
    """Stopped at many places of episodes, and gone on."""
    spec, recording = _spec(longest=40)
    with (
        storage.create(tmp_path / "straight", spec, **recording) as store,
        store.writer(lanes=2) as writer,
    ):
        _advance(_collector(store, writer), 60)
    with storage.create(tmp_path / "resumed", spec, **recording) as store:
        position, state = None, None
        for end in range(4, 64, 4):
            with store.writer(lanes=2, run="a", continue_from=position) as writer:
                collector = _collector(store, writer)
                if state is not None:
                    collector.restore(state, store.schema.observation)
                _advance(collector, end)
                position = StorePosition.from_json(writer.position().to_json())
                state = collector.state()
            if end < 60:
                store.refresh()
                storage.rewind(store, position, "a")
    hashes = [storage.content_hash(tmp_path / name) for name in ("straight", "resumed")]
    assert hashes[0] == hashes[1]


def test_an_environment_that_hides_its_lives_is_named_with_its_place(tmp_path):
    spec, recording = _spec()
    with storage.create(tmp_path / "s", spec, **recording) as store, store.writer() as writer:
        lanes = EnvLanes([partial(StrictFrames, hides_lives=True)])
        policy = RandomPolicy(spec.action_space, seed=5)
        collector = Collector(lanes, writer, policy, seed=5, life_loss=True)
        with pytest.raises(EnvironmentFaultError, match=r"lane 0, episode 0: .*no number 'lives'"):
            collector.advance()
