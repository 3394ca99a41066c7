from __future__ import annotations

import pytest

from storage.errors import ConfigError
from training.config import EnvironmentConfig, LoopConfig, RunConfig, WrapperConfig
from training.config_file import from_mapping, load_config, save_config, to_mapping
from training.refer import ReferSettings


def _write(tmp_path, text: str):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    return path


def test_yaml_overrides_and_defaults(tmp_path):
    path = _write(
        tmp_path,
        """
        environment:
          id: Hopper-v5
          wrappers:
          - ClipAction
          - {class_path: gymnasium.wrappers.TimeLimit, kwargs: {max_episode_steps: 9}}
        agent: {learning_rate: 3e-4, refer: ReF-ER-1}
        loop: {steps: 5000}
        """,
    )
    config = load_config(path, ["loop.lanes=4", "agent.hidden=[32, 32]", "replay.window=4096"])
    assert config.agent.learning_rate == 3e-4
    assert config.agent.refer == ReferSettings(rule_2=False)
    assert config.environment.wrappers[0] == WrapperConfig("ClipAction")
    assert config.environment.wrappers[1].kwargs == {"max_episode_steps": 9}
    assert (config.loop.steps, config.loop.lanes, config.agent.hidden) == (5000, 4, [32, 32])
    assert (config.agent.batch_size, config.agent.discount, config.loop.warmup) == (
        256,
        0.995,
        10_000,
    )


def test_what_is_saved_loads_equal(tmp_path):
    config = RunConfig(EnvironmentConfig("Hopper-v5", {"x": [1, 2]}, [WrapperConfig("ClipAction")]))
    save_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config
    assert from_mapping(RunConfig, to_mapping(config)) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("environment: {id: a}\nlop: {}", r"no setting lop; did you mean loop\?"),
        (
            "environment: {id: a}\nagent: {lerning_rate: 1}",
            "agent.lerning_rate; did you mean learning_rate",
        ),
        (
            "environment: {id: a}\nagent: {refer: {rul_1: 1}}",
            "agent.refer.rul_1; did you mean rule_1",
        ),
        ("environment: {id: a}\nagent: {refer: ReFER}", "ReF-ER-2"),
        ("seed: 1", "lacks environment"),
        ("environment: {id: a}\nloop: {steps: 0}", "loop.steps is 0"),
        (
            "environment: {id: a}\nloop: {steps: many}",
            "loop.steps is 'many'; it must be a whole number",
        ),
        ("environment: {id: a}\nloop: {steps: 1.5}", "whole number"),
        ("environment: {id: a}\nloop: {lane_kind: syn}", "did you mean sync"),
        (
            "environment: {id: a}\nreplay: {window: 100}",
            "window is 100, smaller than agent.batch_size 256",
        ),
        ("environment: {id: a}\nagent: {discount: 1.5}", "discount is 1.5"),
        ("environment: {id: a}\nagent: {hidden: 3}", "agent.hidden is 3; it must be a list"),
        ("environment: {id: a}\nloop: {lanes: 3, lane_kind: sync}", "multiple of lanes"),
        ("environment: {id: a}\nname: a/b", "directory name"),
        ("- 1", "must hold a mapping"),
        ("a: [", "is no YAML"),
    ],
)
def test_impossible_settings_are_named(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        load_config(_write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing\.yaml"):
        load_config(tmp_path / "nothing.yaml")


def test_rounds_count_a_partial_last_one():
    assert LoopConfig(steps=129, round_steps=64).rounds == 3
    assert LoopConfig(steps=128, round_steps=64).rounds == 2
