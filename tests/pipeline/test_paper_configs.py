"""configs/refer and configs/pser: pieces that compose to every combination of the two papers."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.train import read_config
from training.config import RunConfig
from training.settings_files import files_of

CONFIGS = Path(__file__).parents[2] / "configs"
REFER, PSER = CONFIGS / "refer", CONFIGS / "pser"
RULES = {
    "er": (False, False),
    "per": (False, False),
    "refer1": (True, False),
    "refer2": (False, True),
    "refer": (True, True),
}
TASKS = {
    *("HumanoidStandup-v5", "Humanoid-v5", "Ant-v5", "Walker2d-v5", "HalfCheetah-v5"),
    *("Reacher-v5", "Swimmer-v5", "Hopper-v5", "InvertedPendulum-v5", "InvertedDoublePendulum-v5"),
}
VARIANTS: dict[str, dict[str, Any]] = {
    "uniform": {"scheme": "uniform"},
    **{
        f"per_{name}": {"scheme": "per", "initial": initial}
        for name, initial in (("maxprio", "max_ever"), ("currenttd", "current_td"))
    },
    **{
        f"pser_{name}_{mode}": {"scheme": "pser", "initial": initial, "mode": mode, "eta": 0.7}
        for name, initial in (("maxprio", "max_ever"), ("currenttd", "current_td"))
        for mode in ("max", "add")
    },
    "pser_without_eta": {"scheme": "pser", "initial": "max_ever", "mode": "max", "eta": 0.0},
}


def composed(kind: str, *files: Path) -> RunConfig:
    run = read_config(files)
    assert run.agent.kind == kind
    return run


@pytest.mark.parametrize(
    ("agent", "rules"), list(itertools.product(["vracer", "ddpg", "naf"], RULES))
)
def test_every_agent_with_every_rule(agent: str, rules: str) -> None:
    files = [REFER / agent / f"{rules}.yaml", REFER / "tasks/hopper.yaml"]
    run = composed(agent, *files)
    assert run.environment.id == "Hopper-v5"
    assert (run.agent.refer.rule_1, run.agent.refer.rule_2) == RULES[rules]
    assert (run.loop.warmup, run.loop.steps) == (2**18, 2**18 + 10**7)
    assert (run.agent.discount, run.agent.refer.c, run.agent.refer.far_target) == (0.995, 4.0, 0.1)
    noisy, plain = agent != "vracer", rules in ("er", "per")
    assert run.replay.window == (2**19 if noisy and plain else 2**18)
    assert run.agent.batch_size == (128 if agent == "ddpg" else 256)
    if noisy:
        noise, bounded = ("ornstein_uhlenbeck", agent == "ddpg") if plain else ("gaussian", False)
        assert (run.agent.noise, run.agent.bounded_mean) == (noise, bounded)  # type: ignore[attr-defined]
    check_scheme(run, rules)
    laptop = composed(agent, *files, REFER / "laptop.yaml")
    assert (laptop.loop.steps, laptop.loop.warmup, laptop.replay.window) == (200_000, 10_000, 2**18)
    assert laptop.agent == run.agent


def check_scheme(run: RunConfig, rules: str) -> None:
    assert run.replay.scheme == ("per" if rules == "per" else "uniform")
    if rules == "per":
        priorities = run.replay.priorities
        final = 0.5 if run.agent.kind == "ddpg" else 1.0  # A is 0 in DDPG's script
        assert (priorities.alpha, priorities.beta, priorities.beta_final) == (0.5, 0.5, final)
        assert (priorities.beta_draws, priorities.initial) == (2_000_000, "max_current")


def test_the_tasks() -> None:
    files = sorted((REFER / "tasks").glob("*.yaml"))
    runs = [read_config([REFER / "vracer/refer.yaml", file]) for file in files]
    assert {run.environment.id for run in runs} == TASKS
    assert [run.name for run in runs] == [file.stem for file in files]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_of_pser(variant: str) -> None:
    run = composed("dqn", PSER / f"{variant}.yaml")
    replay, priorities, sequences = run.replay, run.replay.priorities, run.replay.sequences
    told = {
        "scheme": replay.scheme,
        "initial": priorities.initial,
        "mode": sequences.mode,
        "eta": sequences.eta,
    }
    assert told | VARIANTS[variant] == told
    assert (replay.window, run.agent.batch_size, run.agent.discount) == (10**6, 32, 0.99)
    assert (run.loop.steps, run.loop.warmup, run.loop.updates_per_step) == (5 * 10**7, 50_000, 0.25)
    assert run.evaluation.every_steps == 250_000
    if replay.scheme != "uniform":
        numbers = (priorities.alpha, priorities.beta, priorities.beta_final, priorities.epsilon)
        assert numbers == (0.5, 0.5, 0.5, 1e-5)
    if replay.scheme == "pser":
        assert (sequences.decay, sequences.window) == (0.4, 5)
    laptop = composed("dqn", PSER / f"{variant}.yaml", PSER / "laptop.yaml")
    assert (laptop.loop.steps, laptop.loop.warmup, laptop.replay.window) == (
        500_000,
        10_000,
        100_000,
    )
    assert (laptop.replay.priorities, laptop.replay.sequences) == (priorities, sequences)


def test_another_game_and_the_authors_own_form() -> None:
    run = composed("dqn", PSER / "pser_currenttd_max.yaml", CONFIGS / "pser_dopamine.yaml")
    assert (run.replay.priorities.error, run.replay.priorities.exponent) == ("huber", "priorities")
    game = read_config([PSER / "uniform.yaml"], ["--environment.id=Atari/Breakout"])
    assert game.environment.id == "Atari/Breakout"


def settings_of(values: dict[str, Any], prefix: str = "") -> list[str]:
    names: list[str] = []
    for key, value in values.items():
        nested = isinstance(value, dict)
        names += settings_of(value, f"{prefix}{key}.") if nested else [f"{prefix}{key}"]
    return names


@pytest.mark.parametrize(
    "file", [*REFER.rglob("*.yaml"), *PSER.rglob("*.yaml")], ids=lambda file: file.stem
)
def test_files_are_short_commented_and_no_copies(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# ")
    values = yaml.safe_load(text)
    shared = file.parent.name in ("pieces", "tasks") or file.stem == "laptop"
    assert shared or len(settings_of(values)) <= 2, "a combination includes its pieces"
    assert all(each.path.is_file() for each in files_of(file))
