"""What distinguishes runs, and in which words."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.comparison_groups import RunSettings, group_names
from pipeline.run_folder import RunFolder


def a_run(name: str = "a", at: str = "Hopper-v5", offline: bool = False, **values: Any):
    return RunSettings(name, at, offline, 0, {"rules": "ReF-ER", "engine": "fused"} | values)


def test_nothing_but_the_seed_differs() -> None:
    assert group_names([a_run("a"), a_run("b")]) == ["ReF-ER", "ReF-ER"]


@pytest.mark.parametrize(
    ("one", "other", "texts"),
    [
        ({}, {"engine": "eager"}, ["engine=fused", "engine=eager"]),
        ({}, {"rules": "ER"}, ["ReF-ER", "ER"]),
        ({"residual": True}, {"residual": False}, ["residual=on", "residual=off"]),
        ({"clip": None}, {"clip": 0.5}, ["clip=none", "clip=0.5"]),
        ({"hidden": [128, 128]}, {"hidden": [8]}, ["hidden=128×128", "hidden=8"]),
        ({"rate": 1e-4}, {"rate": 3e-4}, ["rate=0.0001", "rate=0.0003"]),
        ({}, {"kwargs.mass": 2}, ["kwargs.mass=none", "kwargs.mass=2"]),
        (
            {"wrappers": []},
            {"wrappers": [{"class_path": "my.module.TimeLimit", "kwargs": {"steps": 9}}]},
            ["wrappers=none", "wrappers=TimeLimit"],
        ),
        (
            {"store": "/somewhere/far/away/hopper.store"},
            {"store": "b"},
            ["store=…e/far/away/hopper.store", "store=b"],
        ),
        (
            {"rules": "ER", "window": 1000},
            {"engine": "eager", "window": 2000},
            ["ER, engine=fused, window=1000", "ReF-ER, engine=eager, window=2000"],
        ),
    ],
)
def test_what_differs_is_named(one: dict[str, Any], other: dict[str, Any], texts: list[str]):
    assert group_names([a_run(**one), a_run(**other)]) == texts


def test_too_much_differs_for_a_few_words() -> None:
    many = {"window": 9, "lanes": 2, "discount": 0.9, "engine": "eager"}
    runs = [a_run("a"), a_run("b"), a_run("c"), a_run("d", **many)]
    assert group_names(runs) == ["a and 2 more"] * 3 + ["d"]


def test_values_that_look_alike_when_shortened_are_told_apart() -> None:
    wrappers = [[{"class_path": "TimeLimit", "kwargs": {"steps": n}}] for n in (5, 9)]
    runs = [a_run("a", wrappers=wrappers[0]), a_run("b", wrappers=wrappers[1])]
    assert group_names(runs) == ["a", "b"]


def test_environments_are_not_compared_with_one_another() -> None:
    runs = [a_run(warmup=10), a_run(warmup=10), a_run(at="Ant-v5", warmup=99)]
    assert set(group_names(runs)) == {"ReF-ER"}


def test_what_differs_in_one_environment_is_named_in_all() -> None:
    runs = [a_run(), a_run(engine="eager"), a_run(at="Ant-v5")]
    assert group_names(runs) == ["engine=fused", "engine=eager", "engine=fused"]


def test_rules_that_differ_between_environments_are_each_told() -> None:
    assert group_names([a_run(rules="ER"), a_run(at="Ant-v5")]) == ["ER", "ReF-ER"]


def test_settings_of_a_scheme_name_no_run_of_another() -> None:
    """What plays no role under a run's scheme is not among its values."""
    per, pser = {"priorities.alpha": 0.6}, {"priorities.alpha": 0.6, "sequences.window": None}
    runs = [
        a_run(),
        a_run(rules="ReF-ER, PER", **per),
        a_run(rules="ReF-ER, PSER", **pser),
    ]
    assert group_names(runs) == ["ReF-ER", "ReF-ER, PER", "ReF-ER, PSER"]
    wide = a_run(rules="ReF-ER, PSER", **pser | {"sequences.window": 5})
    assert group_names([*runs, wide])[1:] == [
        "ReF-ER, PER",
        "ReF-ER, PSER, sequences.window=none",
        "ReF-ER, PSER, sequences.window=5",
    ]
    elsewhere = a_run(at="Ant-v5", rules="ReF-ER, PER", **per)
    assert group_names([*runs[2:], wide, elsewhere])[-1] == "ReF-ER, PER"


def of_scheme(run: Path, to: Path, scheme: str, *changes: tuple[str, str]) -> RunFolder:
    """A copy of `run` whose config.yaml says that scheme and has the changes."""
    shutil.copytree(run, to)
    folder = RunFolder(to)
    text = folder.config.read_text()
    for old, new in (("scheme: uniform", f"scheme: {scheme}"), *changes):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    folder.config.write_text(text)
    return folder


ALPHA, ETA = ("  alpha: 0.6", "  alpha: 0.7"), ("  eta: 0.7", "  eta: 0.1")


@pytest.mark.parametrize(
    ("scheme", "rules", "texts"),
    [
        ("uniform", "ReF-ER", ["ReF-ER", "ReF-ER", "ReF-ER"]),
        (
            "per",
            "ReF-ER, PER",
            ["priorities.alpha=0.6", "priorities.alpha=0.7", "priorities.alpha=0.6"],
        ),
        (
            "pser",
            "ReF-ER, PSER",
            [
                "priorities.alpha=0.6, sequences.eta=0.7",
                "priorities.alpha=0.7, sequences.eta=0.7",
                "priorities.alpha=0.6, sequences.eta=0.1",
            ],
        ),
    ],
)
def test_only_what_a_scheme_takes_makes_groups(
    compared: Path, tmp_path: Path, scheme: str, rules: str, texts: list[str]
) -> None:
    folders = [
        of_scheme(compared / "small", tmp_path / f"{scheme}-{i}", scheme, *changes)
        for i, changes in enumerate([(), (ALPHA,), (ETA,)])
    ]
    assert {folder.rules() for folder in folders} == {rules}
    assert folders[0].title() == f"InvertedPendulum-v5: V-RACER, {rules} (small)"
    assert group_names([RunSettings.read(folder) for folder in folders]) == texts


def test_runs_that_do_not_act_are_compared_among_themselves() -> None:
    runs = [a_run(warmup=9), a_run(warmup=9), a_run(offline=True, warmup=0, store="b")]
    assert set(group_names(runs)) == {"ReF-ER"}


def test_the_engine_is_the_one_that_ran(compared: Path, tmp_path: Path) -> None:
    assert RunSettings.read(RunFolder(compared / "eager")).values["engine"] == "eager"
    small = RunFolder(compared / "small")
    assert small.settings()["agent"]["engine"] == "auto"
    assert RunSettings.read(small).values["engine"] == "fused"
    shutil.copytree(compared / "small", tmp_path / "young")
    young = RunFolder(tmp_path / "young")
    young.last_checkpoint.write_bytes(young.last_checkpoint.read_bytes()[:999])
    assert RunSettings.read(young).values["engine"] == "auto"
    young.last_checkpoint.unlink()
    assert RunSettings.read(young).values["engine"] == "auto"


def test_a_setting_that_the_run_does_not_know_has_its_default(
    compared: Path, tmp_path: Path
) -> None:
    shutil.copytree(compared / "small", tmp_path / "older")
    older = RunFolder(tmp_path / "older")
    kept = older.config.read_text()
    older.config.write_text(kept.replace("  residual: true\n", ""))
    assert older.config.read_text() != kept
    runs = [RunSettings.read(RunFolder(compared / "small")), RunSettings.read(older)]
    assert group_names(runs) == ["ReF-ER", "ReF-ER"]


def test_length_and_reporting_do_not_matter(compared: Path, tmp_path: Path) -> None:
    shutil.copytree(compared / "small", tmp_path / "longer")
    longer = RunFolder(tmp_path / "longer")
    text = longer.config.read_text().replace("steps: 1100", "steps: 9999")
    longer.config.write_text(text.replace("every_steps: 64", "every_steps: 640"))
    runs = [RunSettings.read(RunFolder(compared / "small")), RunSettings.read(longer)]
    assert group_names(runs) == ["ReF-ER", "ReF-ER"]
