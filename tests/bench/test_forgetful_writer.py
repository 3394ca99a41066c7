from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bench.collecting import advance
from bench.forgetful_writer import ForgetfulWriter
from training.assembly import make_agent, make_lanes
from training.collector import Collector
from training.config import RunConfig
from training.environments.environment import describe_environment
from training.environments.environment_config import EnvironmentConfig


def test_the_collector_acts_with_it_as_with_a_writer() -> None:
    environment = EnvironmentConfig("InvertedPendulum-v5")
    config = replace(RunConfig(environment), seed=3)
    lanes = make_lanes(config)
    writer: Any = ForgetfulWriter()
    policy = make_agent(config, describe_environment(environment)).policy
    collector = Collector(lanes, writer, policy, seed=3)
    finished = []
    while len(finished) < 3:
        finished += collector.advance()
    lanes.close()
    lengths = [episode.record.length for episode in finished]
    assert sum(lengths) == collector.steps
    for length, episode in zip(lengths, finished, strict=True):
        assert episode.values is not None
        assert episode.values.shape == (length + 1,)
        assert np.isfinite(episode.values).all()


def test_advance_takes_as_many_steps_as_asked() -> None:
    config = RunConfig(EnvironmentConfig("InvertedPendulum-v5"))
    lanes = make_lanes(config)
    writer: Any = ForgetfulWriter()
    policy = make_agent(config, describe_environment(config.environment)).policy
    collector = Collector(lanes, writer, policy, seed=0)
    assert advance(collector, 50) == 50
    assert collector.steps == 50
    lanes.close()
