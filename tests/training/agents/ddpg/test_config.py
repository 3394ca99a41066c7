from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from gymnasium.spaces import Box

from storage import EnvironmentSpec
from storage.errors import ConfigError, UnsupportedSpaceError
from training.agents.ddpg.config import DdpgConfig
from training.config import RunConfig
from training.config_file import from_mapping, to_mapping
from training.refer import PRESETS, ReferSettings

CONFIGS = Path(__file__).parents[4] / "configs"


def test_the_defaults_are_those_of_the_comparison_with_refer():
    own = DdpgConfig()
    assert (own.learning_rate, own.actor_learning_rate, own.critic_weight_decay) == (
        1e-4,
        1e-5,
        1e-4,
    )
    assert (own.hidden, own.batch_size, own.discount, own.target_rate) == (
        [128, 128],
        128,
        0.995,
        0.01,
    )
    assert (own.stdev, own.noise, own.bounded_mean) == (0.2, "gaussian", False)
    assert (own.order, own.critic_action_layer) == ("simultaneous", 0)
    assert own.refer == ReferSettings()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"actor_learning_rate": 0.0}, "agent.actor_learning_rate is 0.0; it must be positive"),
        ({"critic_weight_decay": -1.0}, "agent.critic_weight_decay is -1.0"),
        ({"critic_weight_decay": 1e300}, "agent.critic_weight_decay is 1e+300"),
        ({"critic_action_layer": 2}, "agent.critic_action_layer is 2; with 2 hidden layers"),
        ({"critic_action_layer": -1}, "between 0 and 1"),
        ({"target_rate": 0.0}, "agent.target_rate is 0.0"),
        ({"stdev": 0.0}, "agent.stdev is 0.0"),
        ({"output_bound": 0.0}, "agent.output_bound is 0.0"),
        ({"order": "both"}, "agent.order is 'both'; choose one of simultaneous, sequential"),
        ({"batch_size": 0}, "agent.batch_size is 0"),
    ],
)
def test_impossible_settings_are_named(changed: dict[str, Any], message: str):
    with pytest.raises(ConfigError) as caught:
        DdpgConfig(**changed)
    assert message in str(caught.value)


@pytest.mark.parametrize("high", [1.0, [1.0, np.inf]])
def test_a_bounded_mean_needs_bounds(high):
    box = Box(np.full(2, -1.0, np.float32), np.broadcast_to(np.float32(high), 2), dtype=np.float32)
    spec = EnvironmentSpec("Own-v0", Box(-1, 1, (3,)), box)
    if high == 1.0:
        DdpgConfig(bounded_mean=True).check_spaces(spec)
        return
    DdpgConfig().check_spaces(spec)
    with pytest.raises(UnsupportedSpaceError, match=r"agent\.bounded_mean is on, but Box.*not bou"):
        DdpgConfig(bounded_mean=True).check_spaces(spec)


@pytest.mark.parametrize("rules", PRESETS)
def test_correlated_noise_goes_with_neither_rule(rules):
    if rules == "ER":
        assert DdpgConfig(noise="ornstein_uhlenbeck", refer=PRESETS[rules]).noise != "gaussian"
        return
    with pytest.raises(ConfigError, match=r"correlated along an episode.*gaussian, or both rules"):
        DdpgConfig(noise="ornstein_uhlenbeck", refer=PRESETS[rules])


def test_the_preset_lists_every_default():
    given = yaml.safe_load((CONFIGS / "ddpg.yaml").read_text())
    assert set(given) == {"agent"}
    assert given["agent"] == to_mapping(DdpgConfig())


def test_the_papers_preset_has_its_numbers():
    given = yaml.safe_load((CONFIGS / "ddpg_lillicrap.yaml").read_text())
    values = given | {"environment": {"id": "Hopper-v5"}}
    run = from_mapping(RunConfig, values)
    own = run.agent
    assert isinstance(own, DdpgConfig)
    assert own == dataclasses.replace(
        DdpgConfig(),
        hidden=[400, 300],
        activation="relu",
        residual=False,
        initialisation="fan_in",
        output_bound=3e-3,
        bounded_mean=True,
        critic_action_layer=1,
        learning_rate=1e-3,
        actor_learning_rate=1e-4,
        critic_weight_decay=1e-2,
        discount=0.99,
        target_rate=0.001,
        batch_size=64,
        noise="ornstein_uhlenbeck",
        stdev=0.2,
        order="sequential",
        scale_rewards=False,
        refer=ReferSettings(rule_1=False, rule_2=False, annealing=0.0),
    )
    assert run.replay.window == 1_000_000
