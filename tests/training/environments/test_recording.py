from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import (
    ClipReward,
    FrameStackObservation,
    RecordEpisodeStatistics,
    TimeLimit,
    TransformObservation,
)

import storage
from tests.training.frames import Frames, StrictFrames
from tests.training.zoo import Drift
from training.acting.policy import RandomPolicy
from training.collector import Collector
from training.environments.atari_game import AtariGame
from training.environments.atari_settings import AtariSettings
from training.environments.environment import describe_recorded
from training.environments.environment_config import EnvironmentConfig, WrapperConfig
from training.environments.lanes import EnvLanes
from training.environments.recording import Recording, recording

STACK = partial(FrameStackObservation, stack_size=3)


class Symbols(Frames):
    """Observations that are no arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gymnasium.spaces.Discrete(5)


def _shift(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    return TransformObservation(env, lambda seen: seen[::-1], env.observation_space)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (Drift, Recording()),
        (lambda: STACK(Drift()), Recording(3, "repeat")),
        (lambda: STACK(Frames(), padding_type="reset"), Recording(3, "repeat")),
        (lambda: STACK(Frames(), padding_type="zero"), Recording(3, "zero")),
        (lambda: STACK(Frames(), padding_type=np.full((6, 5), 7, np.uint8)), Recording()),
        (lambda: STACK(Symbols()), Recording()),
        (lambda: ClipReward(TimeLimit(STACK(Frames()), 5), -1, 1), Recording(3, "repeat")),
        (lambda: _shift(STACK(Frames())), Recording()),
        (lambda: STACK(_shift(Frames())), Recording(3, "repeat")),
        (StrictFrames, Recording(life_loss=True)),
        (lambda: STACK(StrictFrames()), Recording(3, "repeat", life_loss=True)),
        (lambda: _shift(StrictFrames()), Recording(life_loss=True)),
        (lambda: AtariGame("Pong"), Recording(4, "zero", life_loss=True)),
        (
            lambda: RecordEpisodeStatistics(AtariGame("Pong", AtariSettings(stack=2, screen=8))),
            Recording(2, "zero", life_loss=True),
        ),
        (lambda: _shift(AtariGame("Pong")), Recording(life_loss=True)),
    ],
)
def test_how_a_store_records_an_environment_is_found_by_looking(make, found):
    assert recording(make()) == found


@pytest.mark.parametrize("padding", ["reset", "zero"])
@pytest.mark.parametrize("base", ["Frames", "StrictFrames"])
def test_stored_frames_come_back_as_the_stacks_that_were_shown(tmp_path, padding, base):
    """Two lanes; episodes as short as one step; a frame of 30 bytes a row."""
    wrapper = WrapperConfig("FrameStackObservation", {"stack_size": 3, "padding_type": padding})
    config = EnvironmentConfig(f"tests.training.frames.{base}", {"longest": 6}, [wrapper])
    spec, found = describe_recorded(config)
    lanes = _Witness(
        [partial(_made, base, longest, padding) for longest in (1, 6)]  # lane 0: one step each
    )
    with (
        storage.create(tmp_path / "s", spec, **dataclasses.asdict(found)) as store,
        store.writer(lanes=2) as writer,
    ):
        collector = Collector(
            lanes,
            writer,
            RandomPolicy(spec.action_space, seed=1),
            seed=1,
            life_loss=found.life_loss,
        )
        while collector.steps < 60:
            collector.advance()
    store = storage.open(tmp_path / "s")
    assert store.schema.column("observation").shape == (6, 5)
    assert store.schema.life_loss == (base == "StrictFrames")
    for segment in store.segments:
        episodes = [each for each in store.iterate_episodes() if each.record.segment == segment.id]
        expected = [shown for shown in lanes.shown[segment.lane] if len(shown) > 1]
        assert len(episodes) >= 2
        for episode, shown in zip(episodes, expected, strict=False):
            np.testing.assert_array_equal(np.array(episode.observation), np.stack(shown))


def _made(base: str, longest: int, padding: str) -> gymnasium.Env[Any, Any]:
    kind = {"Frames": Frames, "StrictFrames": StrictFrames}[base]
    return FrameStackObservation(kind(longest), 3, padding_type=padding)


class _Witness(EnvLanes):
    """Keeps what every lane showed, an array of observations an episode."""

    def __init__(self, makers: list[Any]) -> None:
        super().__init__(makers)
        self.shown: list[list[list[np.ndarray]]] = [[] for _ in makers]

    def reset(self, lane: int, seed: int) -> Any:
        observation, info = super().reset(lane, seed)
        self.shown[lane].append([observation])
        return observation, info

    def step(self, first: int, actions: Any) -> Any:
        transitions = super().step(first, actions)
        for lane, transition in enumerate(transitions, first):
            self.shown[lane][-1].append(transition.observation)
        return transitions
