"""Collecting: environment steps a second with acting and storing, beside bare gymnasium."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import gymnasium
import numpy as np

import storage
from bench.cheetah import ENVIRONMENT, EPISODE
from bench.figure import Figure
from bench.timing import per_second
from training.assembly import make_agent
from training.collector import Collector
from training.config import RunConfig
from training.environment import EnvironmentConfig, describe_environment, make_environment
from training.lanes import EnvLanes

__all__ = ["bare_rate", "measure"]

_EPISODES = 3


def measure(folder: Path) -> list[Figure]:
    environment = EnvironmentConfig(ENVIRONMENT)
    config = RunConfig(environment)
    spec = describe_environment(environment)
    store = storage.create(folder / "store", spec)
    lanes = EnvLanes([partial(make_environment, environment)])
    with store.writer(lanes=1) as writer:
        collector = Collector(lanes, writer, make_agent(config, spec).policy, seed=0)

        def episodes() -> int:
            for _ in range(_EPISODES * EPISODE):
                collector.advance()
            return _EPISODES * EPISODE

        value = per_second(episodes)
    lanes.close()
    store.close()
    details = {"environment": ENVIRONMENT, "policy": "V-RACER, untrained", "lanes": 1}
    return [Figure("collect", "steps/s", value, bare_rate(), "bare gymnasium", details)]


def bare_rate() -> float:
    """Steps a second of the environment alone, with actions drawn beforehand."""
    env = gymnasium.make(ENVIRONMENT)
    actions = np.random.default_rng(0).uniform(-1, 1, (EPISODE, 6)).astype(np.float32)

    def episodes() -> int:
        for number in range(_EPISODES):
            env.reset(seed=number)
            for action in actions:
                env.step(action)
        return _EPISODES * EPISODE

    rate = per_second(episodes)
    env.close()
    return rate
