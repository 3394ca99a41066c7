from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from pipeline.train import read_config
from storage.errors import ConfigError
from storage.replay.forgetting import ORDERS
from storage.replay.schemes.priority_settings import PRIORITY_PRESETS
from training.config import (
    EnvironmentConfig,
    LoopConfig,
    ReplayConfig,
    RunConfig,
    WrapperConfig,
)
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


def test_several_files_are_merged_as_the_command_merges_them(tmp_path):
    base, task, rules = (tmp_path / f"{name}.yaml" for name in ("base", "task", "rules"))
    base.write_text("agent: {discount: 0.9, batch_size: 32}")
    task.write_text(
        "include: [base.yaml]\nenvironment: {id: Hopper-v5, kwargs: {frame_skip: 2}}\n"
        "loop: {steps: 500, warmup: 5}\n"
    )
    rules.write_text(
        "agent: {refer: {rule_1: false}, batch_size: 16}\nloop: {steps: 300}\n"
        "environment: {kwargs: {ctrl_cost_weight: 1}}\n"
    )
    config = load_config([task, str(rules)], ["agent.discount=0.8"])
    assert config == read_config([task, rules], ["--agent.discount=0.8"])
    assert (config.loop.steps, config.loop.warmup, config.agent.batch_size) == (300, 5, 16)
    assert config.environment.kwargs == {"frame_skip": 2, "ctrl_cost_weight": 1}
    assert load_config((task,)) == load_config(str(task)) == load_config(task)


def test_what_names_no_files_or_overrides_is_told(tmp_path):
    file = _write(tmp_path, "environment: {id: a}")
    with pytest.raises(ConfigError, match="no file of settings is named"):
        load_config([])
    with pytest.raises(ConfigError, match=r"overrides are 'loop\.steps=5'; give a list"):
        load_config(file, "loop.steps=5")


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
        ("environment: {id: a}\nagent: {discount: 1.5}", "discount is 1.5"),
        ("environment: {id: a}\nagent: {hidden: 3}", "agent.hidden is 3; it must be a list"),
        (
            "environment: {id: a}\nloop: {lanes: 3, lane_kind: sync, steps: 1000, round_steps: 64}",
            r"multiples of lanes: give loop.steps 1002 \(it is 1000\) and loop.round_steps 66 \(",
        ),
        (
            "environment: {id: a}\nloop: {lanes: 3, lane_kind: sync, steps: 999, round_steps: 64}",
            r"be multiples of lanes: give loop.round_steps 66 \(it is 64\)",
        ),
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


def test_priorities_by_the_name_of_a_preset(tmp_path):
    text = "environment: {{id: a}}\nreplay: {{scheme: pser, priorities: {name}}}\n"
    config = load_config(_write(tmp_path, text.format(name="dopamine")))
    assert config.replay.priorities == PRIORITY_PRESETS["dopamine"]
    assert config.replay.prioritized
    with pytest.raises(ConfigError, match=r"replay\.priorities is 'dopa'.*: paper, dopamine"):
        load_config(_write(tmp_path, text.format(name="dopa")))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("scheme: perr", r"replay\.scheme is 'perr'; did you mean per\?.* uniform, per, pser, or"),
        (
            "forget: newest",
            r"replay\.forget is 'newest'.*: oldest, most_far, largest_divergence",
        ),
        ("priorities: {alpha: 1.5}", r"replay\.priorities: .*alpha = 1\.5 must lie in \[0, 1\]"),
        ("priorities: {alpha: .nan}", r"replay\.priorities: .*alpha = nan must lie in"),
        ("priorities: {beta_draws: 0}", r"replay\.priorities: .*beta_draws = 0 must be"),
        ("priorities: {beta_draws: 1.5}", r"replay\.priorities\.beta_draws is 1\.5; .* whole"),
        (
            "priorities: {error: hubr}",
            r"replay\.priorities\.error is 'hubr'; did you mean huber\?.*: absolute, huber",
        ),
        ("priorities: {alhpa: 1}", r"replay\.priorities\.alhpa; did you mean alpha\?"),
        ("sequences: {decay: 1.0}", r"replay\.sequences: .*decay = 1\.0 must lie in \[0, 1\)"),
        ("sequences: {window: -1}", r"replay\.sequences: .*window = -1 must be"),
    ],
)
def test_impossible_schemes_and_priorities_are_named(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        load_config(_write(tmp_path, f"environment: {{id: a}}\nreplay: {{{settings}}}\n"))


def test_a_forgetting_order_is_checked_at_once():
    with pytest.raises(ConfigError, match=r"replay\.forget is 'x'; choose one of oldest, most_far"):
        ReplayConfig(forget="x")


def test_a_scheme_of_one_s_own_is_named_by_its_class_path():
    for name in ("mine.schemes.Newest", "mine:Newest"):
        config = ReplayConfig(scheme=name)
        assert (config.scheme, config.prioritized) == (name, True)
    with pytest.raises(ConfigError, match=r"replay\.scheme is 3; Choose one of uniform, per, pser"):
        ReplayConfig(scheme=3)


def test_settings_name_the_orders_that_replay_has():
    hints = get_type_hints(ReplayConfig)
    assert get_args(hints["forget"]) == tuple(ORDERS)
