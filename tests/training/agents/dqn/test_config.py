from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from storage import EnvironmentSpec
from storage.errors import ConfigError, UnsupportedSpaceError
from training.agents.dqn.config import DqnConfig
from training.agents.dqn.frames import FrameShape, frame_shape
from training.config_file import from_mapping
from training.refer import PRESETS, ReferSettings

Box = gymnasium.spaces.Box
DISCRETE = gymnasium.spaces.Discrete(3, start=2)


def spec(observation=None, action=DISCRETE) -> EnvironmentSpec:
    shown = Box(-1, 1, (3,), np.float32) if observation is None else observation
    return EnvironmentSpec("Test-v0", shown, action)


def frames(*shape) -> Box:
    return Box(0, 255, shape, np.uint8)


def test_the_defaults_are_those_of_psers_authors():
    settings = DqnConfig()
    assert (settings.discount, settings.batch_size, settings.learning_rate) == (0.99, 32, 2.5e-4)
    assert (settings.optimizer, settings.rmsprop_decay, settings.rmsprop_epsilon) == (
        "rmsprop",
        0.95,
        1e-5,
    )
    assert (settings.loss, settings.padding, settings.hidden) == ("huber", "same", [512])
    assert settings.target_interval == 10_000 * 0.25
    assert (settings.exploration_final, settings.exploration_steps) == (0.01, 1_000_000)
    assert settings.evaluation_epsilon == 0.001
    refer = settings.refer
    assert (refer.rule_1, refer.rule_2, refer.annealing, refer.c) == (False, False, 0.0, 4.0)


def test_exploration_falls_in_a_line_behind_the_warmup():
    settings = DqnConfig(exploration_initial=0.8, exploration_final=0.2, exploration_steps=60)
    by_step = [settings.exploration(step, 40) for step in range(200)]
    assert by_step[:40] == [1.0] * 40
    assert by_step[40:100] == pytest.approx([0.8 - 0.01 * since for since in range(60)])
    assert by_step[100:] == [0.2] * 100
    at_once = DqnConfig(exploration_steps=0)
    assert [at_once.exploration(step, 2) for step in range(4)] == [1.0, 1.0, 0.01, 0.01]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"exploration_final": 1.5}, "agent.exploration_final is 1.5"),
        ({"exploration_initial": -0.1}, "agent.exploration_initial is -0.1"),
        ({"evaluation_epsilon": 2.0}, "agent.evaluation_epsilon is 2.0"),
        ({"exploration_steps": -1}, "agent.exploration_steps is -1"),
        ({"rmsprop_decay": 1.0}, "agent.rmsprop_decay is 1.0"),
        ({"rmsprop_epsilon": 0.0}, "agent.rmsprop_epsilon is 0.0"),
        ({"adam_epsilon": -1.0}, "agent.adam_epsilon is -1.0"),
        ({"target_interval": 0}, "agent.target_interval is 0"),
        ({"temperature": 0.0}, "agent.temperature is 0.0"),
        ({"hidden": []}, "agent.hidden is"),
        ({"clip_rewards": True, "scale_rewards": True}, "switch one of them off"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        DqnConfig(**settings)


def test_rule_2_needs_a_policy_with_a_gradient():
    for name in ("ReF-ER", "ReF-ER-2"):
        with pytest.raises(ConfigError, match="a greedy choice has none"):
            DqnConfig(refer=PRESETS[name])
        assert DqnConfig(refer=PRESETS[name], policy="softmax").refer.rule_2
    assert DqnConfig(refer=PRESETS["ReF-ER-1"]).refer.rule_1
    with pytest.raises(ConfigError, match="rule_2 is on"):
        from_mapping(DqnConfig, {"refer": {"rule_2": True}}, "agent")


def test_frames_are_told_from_other_observations():
    assert frame_shape(frames(4, 84, 84)) == FrameShape(4, 84, 84, True)
    assert frame_shape(frames(96, 90, 3)) == FrameShape(3, 96, 90, False)
    assert frame_shape(frames(4, 36, 36)) is not None
    assert frame_shape(frames(4, 35, 84)) is None
    assert frame_shape(frames(84, 84)) is None
    assert frame_shape(Box(0, 255, (4, 84, 84), np.float32)) is None
    assert frame_shape(gymnasium.spaces.Dict({"a": frames(4, 84, 84)})) is None


def test_other_spaces_are_refused():
    DqnConfig().check_spaces(spec())
    DqnConfig(network="cnn").check_spaces(spec(frames(4, 84, 84)))
    DqnConfig(network="mlp").check_spaces(spec(frames(4, 84, 84)))
    boxes = Box(-1, 1, (2,), np.float32)
    for action in (boxes, gymnasium.spaces.MultiDiscrete([2, 3]), gymnasium.spaces.Dict(a=boxes)):
        with pytest.raises(UnsupportedSpaceError, match="for boxes choose"):
            DqnConfig().check_spaces(spec(action=action))
    with pytest.raises(ConfigError, match="convolutions need one uint8"):
        DqnConfig(network="cnn").check_spaces(spec(frames(4, 20, 20)))


def test_partial_settings_of_the_rules_keep_the_others():
    settings = from_mapping(DqnConfig, {"refer": {"rule_1": True}}, "agent")
    assert settings.refer == ReferSettings(rule_1=True, rule_2=False, annealing=0.0)
