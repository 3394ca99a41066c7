from __future__ import annotations

import pytest

from training.environments.environment import make_environment
from training.environments.environment_config import EnvironmentConfig, WrapperConfig
from training.environments.replayability import (
    NotReplayableWarning,
    unreplayable_wrappers,
    warn_unreplayable,
)


def test_wrappers_with_running_statistics_are_named():
    env = make_environment(
        EnvironmentConfig(
            "Pendulum-v1",
            wrappers=[WrapperConfig("NormalizeObservation"), WrapperConfig("NormalizeReward")],
        )
    )
    assert unreplayable_wrappers(env) == ["NormalizeReward", "NormalizeObservation"]
    with pytest.warns(NotReplayableWarning, match="NormalizeReward, NormalizeObservation"):
        warn_unreplayable(env)
    assert unreplayable_wrappers(make_environment(EnvironmentConfig("Pendulum-v1"))) == []
