"""Files of settings that include one another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from storage.errors import ConfigError
from training.config_file import load_config, save_config
from training.settings_files import files_of, merged, read_mapping


def written(folder: Path, **texts: str) -> Path:
    """Writes NAME.yaml of each; gives the first one's path."""
    for name, text in texts.items():
        file = folder / f"{name.replace('__', '/')}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder / f"{next(iter(texts)).replace('__', '/')}.yaml"


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([], {}),
        ([{"a": 1}, {"b": 2}], {"a": 1, "b": 2}),
        ([{"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}], {"a": {"x": 1, "y": 3}}),
        ([{"a": {"b": {"x": 1}}}, {"a": {"b": {"y": 2}}}], {"a": {"b": {"x": 1, "y": 2}}}),
        ([{"a": [1, 2]}, {"a": [3]}], {"a": [3]}),
        ([{"a": {"x": 1}}, {"a": "er"}], {"a": "er"}),
        ([{"a": "er"}, {"a": {"x": 1}}], {"a": {"x": 1}}),
        ([{"a": {"x": 1}}, {"a": None}], {"a": None}),
    ],
)
def test_mappings_are_merged_and_all_else_replaced(
    parts: list[dict[str, Any]], whole: dict[str, Any]
) -> None:
    before = repr(parts)
    assert merged(parts) == whole
    assert repr(parts) == before


def test_included_files_come_first_and_the_including_one_wins(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        run="include: [a.yaml, b.yaml]\nloop: {steps: 3}\n",
        a="seed: 1\nname: a\nloop: {steps: 1, warmup: 1, lanes: 1}\n",
        b="seed: 2\nloop: {steps: 2, warmup: 2}\n",
    )
    loop = {"steps": 3, "warmup": 2, "lanes": 1}
    assert read_mapping(file) == {"seed": 2, "name": "a", "loop": loop}
    assert [each.path.name for each in files_of(file)] == ["a.yaml", "b.yaml", "run.yaml"]


def test_paths_are_relative_to_the_file_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(
        tmp_path,
        agents__ddpg__er="include: [../shared.yaml]\nseed: 1\n",
        agents__shared="include: [../er.yaml]\nname: shared\n",
        er="agent: {refer: {rule_1: false}}\n",
    )
    monkeypatch.chdir(tmp_path / "agents")
    refer = {"refer": {"rule_1": False}}
    for file in ("ddpg/er.yaml", str(tmp_path / "agents/ddpg/er.yaml")):
        assert read_mapping(Path(file)) == {"agent": refer, "name": "shared", "seed": 1}


def test_one_file_may_be_included_twice(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        run="include: [a.yaml, b.yaml]",
        a="include: [c.yaml]",
        b="include: [c.yaml]",
        c="seed: 4",
    )
    assert read_mapping(file) == {"seed": 4}


def test_a_cycle_is_refused_with_its_chain(tmp_path: Path) -> None:
    file = written(tmp_path, a="include: [b.yaml]", b="include: [c.yaml]", c="include: [a.yaml]")
    chain = " → ".join(str(tmp_path / f"{name}.yaml") for name in "abca")
    with pytest.raises(ConfigError, match=f"a.yaml includes itself: {re.escape(chain)}"):
        read_mapping(file)
    itself = written(tmp_path, d="include: [./d.yaml]")
    with pytest.raises(ConfigError, match=r"d\.yaml includes itself"):
        read_mapping(itself)


def test_a_missing_or_broken_file_is_named_with_its_chain(tmp_path: Path) -> None:
    file = written(tmp_path, a="include: [b.yaml]", b="include: [c.yaml]")
    chain = re.escape(" → ".join(str(tmp_path / f"{name}.yaml") for name in "abc"))
    with pytest.raises(
        ConfigError, match=rf"there is no configuration file .*c\.yaml \(included: {chain}\)"
    ):
        read_mapping(file)
    written(tmp_path, c="- 1")
    with pytest.raises(ConfigError, match=rf"c\.yaml holds a list; .*\(included: {chain}\)"):
        read_mapping(file)
    with pytest.raises(ConfigError, match=r"there is no configuration file .*none\.yaml$"):
        read_mapping(tmp_path / "none.yaml")


@pytest.mark.parametrize("value", ["er.yaml", "", "[1]", "[['a']]", "{a: b}", "['']"])
def test_what_is_no_list_of_paths(tmp_path: Path, value: str) -> None:
    file = written(tmp_path, run=f"include: {value}")
    with pytest.raises(ConfigError, match=r"run\.yaml: include is .* must be a list of paths"):
        read_mapping(file)


def test_a_run_s_settings_are_written_resolved(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        run="include: [task.yaml]\nloop: {steps: 30}\n",
        task="environment: {id: Hopper-v5, kwargs: {a: 1}}\nloop: {steps: 20, warmup: 4}\n",
    )
    config = load_config(file, ["seed=7"])
    assert (config.environment.kwargs, config.seed) == ({"a": 1}, 7)
    assert (config.loop.steps, config.loop.warmup) == (30, 4)
    save_config(config, tmp_path / "config.yaml")
    assert "include" not in (tmp_path / "config.yaml").read_text()
    assert load_config(tmp_path / "config.yaml") == config
