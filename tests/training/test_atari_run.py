"""Whole runs in a game: lanes in one vector environment, evaluation, resuming, and its store."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage
import training
from storage.errors import ConfigError
from tests.training.tiny import ROUND, checkpoint_content, differences, rows, run, tiny_config
from training.agents.dqn.config import DqnConfig
from training.config import EnvironmentConfig, RunConfig
from training.environments.environment import make_environment

GAME = EnvironmentConfig(
    "Atari/Breakout", {"screen": 36, "stack": 2, "max_frames": 160, "noop_max": 10, "sticky": 0.25}
)
"""Episodes of 40 steps."""


def _config(environment: EnvironmentConfig = GAME, **more: Any) -> RunConfig:
    agent = DqnConfig(
        hidden=[8],
        batch_size=8,
        target_interval=7,
        exploration_steps=100,
        learning_rate=1e-3,
        engine="eager",
    )
    settings = {"agent": agent, "ratio": 0.25, "rounds": 12, "window": 400} | more
    return dataclasses.replace(tiny_config(**settings), environment=environment)


@pytest.mark.parametrize(("lanes", "kind"), [(1, "serial"), (2, "sync")])
def test_gone_on_from_the_middle_of_episodes_it_equals_a_straight_run(tmp_path, lanes, kind):
    config = _config(lanes=lanes, lane_kind=kind, evaluate_every=6 * ROUND)
    run(config, tmp_path / "straight")
    run(config, tmp_path / "resumed", max_steps=9)
    run(config, tmp_path / "resumed", resume=True)
    contents = [checkpoint_content(tmp_path / name) for name in ("straight", "resumed")]
    assert differences(*contents) == []
    assert contents[0]["OnlineExperience"]["collector"]["lives"] != [0] * lanes
    assert rows(tmp_path / "straight") == rows(tmp_path / "resumed")
    stores = [tmp_path / name / "store" for name in ("straight", "resumed")]
    assert storage.content_hash(stores[0]) == storage.content_hash(stores[1])
    with storage.open(stores[0]) as store:
        assert store.schema.column("observation").shape == (36, 36)
        assert store.schema.frame_stack == 2
        assert store.columns["life_lost"][:].any()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    run(_config(), folder)
    return folder


def test_a_run_from_its_store_knows_how_the_game_was_made(tmp_path, trained):
    config = _config(EnvironmentConfig("Atari/breakout"), store=str(trained / "store"))
    agent = run(dataclasses.replace(config, evaluation=_evaluated()), tmp_path)
    assert agent.config.environment.kwargs == GAME.kwargs
    assert agent.counters.updates > 0
    assert float(rows(tmp_path)[-1]["evaluation_length"]) == 40


def _evaluated() -> Any:
    return tiny_config(evaluate_every=6 * ROUND).evaluation


def test_another_game_is_refused(trained, tmp_path):
    config = _config(EnvironmentConfig("Atari/Assault"), store=str(trained / "store"))
    with pytest.raises((ConfigError, storage.errors.SchemaMismatchError), match="Atari/Breakout"):
        run(config, tmp_path)


def test_a_loaded_agent_plays_what_it_was_trained_in(trained):
    agent = training.load(trained)
    env = make_environment(agent.config.environment)
    observation, _ = env.reset(seed=1)
    action = agent.act(observation)
    assert action in env.action_space
    assert observation.shape == (2, 36, 36)
    np.testing.assert_equal(int(agent.act(observation)), int(action))
