"""Runs of one method, and variants, told apart by settings that nobody has trained with."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest

from pipeline.flat_settings import flat_settings
from pipeline.protocol.method_settings import check_alike, check_seeds, differing, variant_names
from storage.errors import ConfigError
from training.config import EnvironmentConfig, RunConfig
from training.config_file import to_mapping

DEFAULTS = dict(flat_settings(to_mapping(RunConfig(EnvironmentConfig("Atari/Pong")))))


@dataclass
class Run:
    where: str
    method: str
    seed: int
    settings: dict[str, Any]


def run(where: str = "a", method: str = "DQN, ER, PSER", **changes: Any) -> Run:
    """A run with `changes`, whose names have __ for each dot."""
    own = {name.replace("__", "."): value for name, value in changes.items()}
    return Run(where, method, own.pop("seed", 0), DEFAULTS | {"replay.scheme": "pser"} | own)


def test_variants_are_named_by_how_they_draw() -> None:
    runs = [
        run(),
        run(replay__sequences__mode="add", seed=1),
        run(replay__sequences__mode="add", replay__priorities__stratified=False),
        run(method="DQN, ER, PER", replay__scheme="per", replay__priorities__alpha=0.1),
    ]
    told = "DQN, ER, PSER, replay.priorities.stratified={}, replay.sequences.mode={}"
    assert variant_names(runs) == [
        told.format("true", "max"),
        told.format("true", "add"),
        told.format("false", "add"),
        "DQN, ER, PER",
    ]
    windows = [run(), run(replay__sequences__window=5)]
    assert [name[15:] for name in variant_names(windows)] == [
        "replay.sequences.window=null",
        "replay.sequences.window=5",
    ]


def test_one_variant_has_its_method_s_name() -> None:
    runs = [run(), run(seed=1, agent__engine="eager"), run(replay__window=5)]
    assert variant_names(runs) == ["DQN, ER, PSER"] * 3
    per = [run(replay__scheme="per"), run(replay__scheme="per", replay__sequences__mode="add")]
    assert variant_names(per) == ["DQN, ER, PSER"] * 2  # PER has no sequences


def test_all_runs_are_compared_in_any_order() -> None:
    plain = run(replay__scheme="uniform")
    one = run(replay__priorities__alpha=0.1)
    two = run(replay__priorities__alpha=0.2, environment__kwargs__stack=2)
    names = {"replay.scheme", "replay.priorities.alpha", "environment.kwargs.stack"}
    for order in permutations([plain, one, two]):
        assert set(differing(order)) == names
    assert differing([plain]) == []


def test_steps_count_where_the_weights_follow_them() -> None:
    steps = {"loop__steps": 2_000_000}
    assert differing([run(), run(**steps)]) == ["loop.steps"]
    with pytest.raises(ConfigError, match=r"differ in loop\.steps \(100000 and 2000000\); name"):
        check_alike([run(), run(**steps)], "DQN")
    for same in (
        {"replay__scheme": "uniform"},
        {"replay__priorities__beta_draws": 500},
        {"replay__priorities__beta_final": 0.4},
    ):
        assert differing([run(**same), run(**same, **steps)]) == []
        assert differing([run(**same), run(**same, **steps)], budget=True) == ["loop.steps"]
    constant = run(replay__priorities__beta_final=0.4)
    draws = run(replay__priorities__beta_final=0.4, replay__priorities__beta_draws=9)
    assert differing([constant, draws]) == []


def test_variants_differ_in_nothing_else() -> None:
    check_alike([run(), run(replay__sequences__mode="add"), run(name="b", seed=4)], "DQN")
    other = run("b", replay__sequences__mode="add", agent__learning_rate=0.5)
    with pytest.raises(ConfigError, match=r"a and b are both PSER, but differ in agent\.learning"):
        check_alike([run(), run(), other], "PSER")
    stack = run("b", environment__kwargs__stack=2)
    told = r"environment\.kwargs\.stack \(left out and 2\); name"
    with pytest.raises(ConfigError, match=told):
        check_alike([run(), stack], "PSER")


def test_a_seed_is_one_sample() -> None:
    check_seeds([run(), run("b", seed=1)], "PSER")
    with pytest.raises(ConfigError, match="a and c are both PSER with seed 0; leave one out"):
        check_seeds([run(), run("b", seed=1), run("c")], "PSER")
