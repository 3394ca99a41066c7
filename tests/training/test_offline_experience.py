"""What a fixed store must keep to be learnt from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import storage
from storage.errors import SchemaMismatchError
from tests.training.tiny import run, tiny_config
from training.environments.environment import describe_environment, make_environment
from training.environments.environment_config import EnvironmentConfig


def test_a_store_without_behaviours_is_refused_before_anything_is_written(tmp_path):
    drift = EnvironmentConfig("tests.training.zoo.Drift")
    path, env = tmp_path / "store", make_environment(drift)
    spec = describe_environment(drift)
    with storage.create(path, spec, behaviour="unknown") as store, store.writer() as writer:
        observation, _ = env.reset(seed=0)
        writer.begin(0, observation, seed=0)
        ended = False
        while not ended:
            action = np.zeros(env.action_space.shape, np.float32)
            observation, reward, terminated, truncated, _ = env.step(action)
            ended = terminated or truncated
            writer.step(
                0,
                action=action,
                raw_action=action,
                reward=reward,
                observation=observation,
                terminated=terminated,
                truncated=truncated,
            )
    config = tiny_config(rounds=1)
    agent = replace(config.agent, batch_size=2)
    config = replace(config, agent=agent, replay=replace(config.replay, store=str(path)))
    with pytest.raises(SchemaMismatchError, match=r"store keeps no behaviour of its steps"):
        run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
