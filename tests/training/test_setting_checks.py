"""Numbers that no run can be made with, by kind."""

from __future__ import annotations

import numpy as np
import pytest

import training
from storage.errors import ConfigError
from training.agents.ddpg.config import DdpgConfig
from training.agents.dqn.config import DqnConfig
from training.agents.naf.config import NafConfig
from training.config import (
    EnvironmentConfig,
    EvaluationConfig,
    LoopConfig,
    ReplayConfig,
    RunConfig,
    VRacerConfig,
)
from training.config_file import from_mapping
from training.refer import ReferSettings, preset

FLOATS = ("agent.learning_rate", "agent.gradient_clip")
WHOLE = ("loop.steps", "loop.warmup", "replay.window", "agent.batch_size", "evaluation.every_steps")


def refuse(name: str, value: object, reason: str) -> None:
    section, _, key = name.partition(".")
    values = {"environment": {"id": "Hopper-v5"}, section: {key: value}}
    with pytest.raises(ConfigError, match=rf"{name} is .*; it must {reason}") as caught:
        from_mapping(RunConfig, values)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", [*FLOATS, "agent.discount", "loop.updates_per_step"])
@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400, "9" * 400])
def test_numbers_are_finite(name: str, value: object) -> None:
    refuse(name, value, "be finite")


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("value", [1e-300, 1.17e-38, 3.41e38, 1e308])
def test_positive_numbers_fit_float32(name: str, value: float) -> None:
    refuse(name, value, "lie between 1.18e-38 and 3.4e")


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("value", [0, -1.0])
def test_positive_numbers_are_positive(name: str, value: float) -> None:
    refuse(name, value, "be positive")


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", [2**63, 10**30, 1e308])
def test_whole_numbers_fit_int64(name: str, value: float) -> None:
    refuse(name, value, r"be below 2\*\*63")


def test_sizes_of_layers_fit_int64() -> None:
    refuse("agent.hidden", [8, 2**63], r"be below 2\*\*63")


@pytest.mark.parametrize("ratio", [1e308, 2.0**20])
def test_updates_can_be_counted(ratio: float) -> None:
    with pytest.raises(ConfigError, match=r"makes 2\*\*63 updates or more"):
        LoopConfig(steps=2**43, warmup=0, updates_per_step=ratio)
    assert LoopConfig(steps=2**42, warmup=0, updates_per_step=2.0**20).steps == 2**42


@pytest.mark.parametrize("name", ["c", "annealing"])
@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e39, -1.0])
def test_refer_settings_fit_float32(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{name} = .* must be at least 0 and at most 3.4e"):
        ReferSettings(**{name: value})


@pytest.mark.parametrize("stdev", [1e-6, 1e6])
def test_the_outermost_deviations_make_a_network(stdev: float, tmp_path) -> None:
    agent = VRacerConfig(hidden=[8], initial_stdev=stdev, engine="eager")
    environment = EnvironmentConfig("InvertedPendulum-v5")
    config = RunConfig(environment, agent=agent, replay=ReplayConfig(window=1000))
    module, _ = training.build(config, tmp_path)
    assert module.config.agent.initial_stdev == stdev


@pytest.mark.parametrize("value", [0.0, -1.0, 9e-7, 1e-30, 1.1e6])
@pytest.mark.parametrize(
    ("config", "name"),
    [(VRacerConfig, "initial_stdev"), (DdpgConfig, "stdev"), (NafConfig, "stdev")],
)
def test_deviations_have_densities_that_float32_holds(config, name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"agent\.{name} is .* between 1e-06 and 1e\+06"):
        config(**{name: value})


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        (DqnConfig, {"optimizer": "sgd"}, "agent.optimizer is 'sgd'; choose one of rmsprop, adam"),
        (DqnConfig, {"padding": "SAME"}, "agent.padding is 'SAME'; choose one of same, valid"),
        (DqnConfig, {"loss": "mse"}, "agent.loss is 'mse'; choose one of huber, squared"),
        (DqnConfig, {"batch_size": 2.5}, "agent.batch_size is 2.5; it must be a whole number"),
        (DdpgConfig, {"noise": "ou", "refer": preset("ER")}, "agent.noise is 'ou'; choose one of"),
        (NafConfig, {"initialisation": "xavier"}, "agent.initialisation is 'xavier'; choose one"),
        (NafConfig, {"kind": "ddpg"}, "agent.kind is 'ddpg'; choose one of naf"),
        (LoopConfig, {"lane_kind": "threads"}, "loop.lane_kind is 'threads'; choose one of"),
        (LoopConfig, {"durability": "safe"}, "loop.durability is 'safe'; choose one of process, "),
        (EvaluationConfig, {"environment_kwargs": 3}, "environment_kwargs is 3; it must be set"),
        (LoopConfig, {"lanes": True}, "loop.lanes is True; it must be a whole number"),
    ],
)
def test_python_is_told_what_files_are_told(settings, given, message) -> None:
    """Settings that no file has gone through: a wrong word would else train something else."""
    with pytest.raises(ConfigError, match=message):
        settings(**given)


def test_numpy_s_whole_numbers_are_whole() -> None:
    assert LoopConfig(steps=np.int64(2000)).steps == 2000
