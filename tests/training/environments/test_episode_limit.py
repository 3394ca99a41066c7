from __future__ import annotations

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit

from tests.training.zoo import Drift
from training.environments.environment import make_environment
from training.environments.environment_config import EnvironmentConfig, WrapperConfig
from training.environments.episode_limit import episode_limit


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        (EnvironmentConfig("tests.training.zoo.Drift"), None),
        (EnvironmentConfig("ZooDrift-v0"), 50),
        (EnvironmentConfig("Atari/Pong"), 27_000),
        (EnvironmentConfig("Atari/Pong", {"max_frames": 10, "frame_skip": 3}), 4),
        (
            EnvironmentConfig(
                "Atari/Pong", wrappers=[WrapperConfig("TimeLimit", {"max_episode_steps": 9})]
            ),
            9,
        ),
        (EnvironmentConfig("ALE/Pong-v5"), 27_000),
        (EnvironmentConfig("Pong-v4"), 54_000),
    ],
)
def test_the_longest_episode(config, steps):
    env = make_environment(config)
    assert episode_limit(env) == steps
    env.close()


def test_the_smallest_of_several_limits_counts():
    wrapped = TimeLimit(gymnasium.wrappers.OrderEnforcing(TimeLimit(Drift(), 7)), 30)
    assert episode_limit(wrapped) == 7
