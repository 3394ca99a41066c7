"""The files of settings that come with DQN."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pipeline.train import read_config
from tests.training.tiny import rows, run
from training.agents.dqn.config import DqnConfig
from training.config_file import to_mapping
from training.refer import ReferSettings

CONFIGS = Path(__file__).parents[4] / "configs"
HOPPER = CONFIGS / "hopper.yaml"


def agent(*names: str) -> DqnConfig:
    settings = read_config([HOPPER, *(CONFIGS / f"{name}.yaml" for name in names)]).agent
    assert isinstance(settings, DqnConfig)
    return settings


def test_dqn_yaml_shows_every_setting_at_its_default_but_one():
    defaults = to_mapping(DqnConfig(clip_rewards=True))
    shown = yaml.safe_load((CONFIGS / "dqn.yaml").read_text())["agent"]
    assert to_mapping(agent("dqn")) == defaults
    assert shown.keys() == defaults.keys()


def test_the_nature_paper():
    settings = agent("dqn", "dqn_nature")
    assert (settings.padding, settings.exploration_final) == ("valid", 0.1)
    assert settings.optimizer == "rmsprop"
    assert settings.target_interval == 2500


def test_a_laptops_settings_come_behind_those_of_an_experiment():
    run = read_config(
        [HOPPER, *(CONFIGS / f"{name}.yaml" for name in ("dqn", "pser", "dqn_laptop"))]
    )
    settings = run.agent
    assert isinstance(settings, DqnConfig)
    assert (settings.optimizer, settings.learning_rate) == ("adam", 1e-4)
    assert settings.target_interval / run.loop.updates_per_step == 1000
    assert (settings.exploration_steps, run.loop.warmup) == (50_000, 10_000)
    assert run.replay.scheme == "pser"
    assert settings.clip_rewards


def test_rule_1_goes_with_the_default_policy_and_rule_2_with_the_softmax():
    assert agent("dqn", "refer1").refer == ReferSettings(rule_2=False, annealing=0.0)
    assert agent("cartpole", "refer1").refer.rule_1


@pytest.mark.soak
def test_cartpole_is_balanced_within_its_steps(tmp_path):
    run_config = read_config([CONFIGS / "cartpole.yaml"])
    run(run_config, tmp_path)
    greedy = [float(row["evaluation_return"] or 0) for row in rows(tmp_path)]
    assert run_config.loop.steps == 100_000
    assert max(greedy) >= 475
