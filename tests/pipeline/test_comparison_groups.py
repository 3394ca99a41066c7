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
