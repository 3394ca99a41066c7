"""Numbers as people write them, in files and overrides alike."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from storage.errors import ConfigError
from training.config import EnvironmentConfig, RunConfig
from training.config_file import from_mapping, load_config, save_config

TEXT = "environment: {{id: Hopper-v5, kwargs: {{scale: {number}}}}}\nloop: {{steps: {number}}}\n"


@pytest.mark.parametrize("text", ["1e4", "1E+4", "10_000", "1_0e3", "10000.0", "0.1e5", ".1e5"])
def test_whole_numbers_in_every_notation(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TEXT.format(number=text))
    for config in (load_config(file), load_config(file, [f"loop.steps={text}"])):
        assert config.loop.steps == 10_000
        assert isinstance(config.loop.steps, int)
        assert config.environment.kwargs == {"scale": 10_000}


@pytest.mark.parametrize("text", ["1.5e0", "1e-1", "2**18", "'1e4'", "1e400", "e4", "1e"])
def test_what_is_no_whole_number(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TEXT.format(number=5))
    with pytest.raises(ConfigError, match=r"loop\.steps is .*; it must be a whole number"):
        load_config(file, [f"loop.steps={text}"])


def test_text_that_looks_like_a_number_stays_text(tmp_path: Path) -> None:
    config = RunConfig(EnvironmentConfig("Hopper-v5", {"map": "4e4"}), name="1e4")
    save_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config


def test_an_override_that_is_no_yaml(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TEXT.format(number=5))
    with pytest.raises(ConfigError, match=r"override 'agent\.hidden=\[8': '\[8' is no YAML"):
        load_config(file, ["agent.hidden=[8"])


IMPOSSIBLE = {
    "no such day": (b"name: 2024-02-30", "no possible timestamp"),
    "point and underscore": (b"seed: ._e5", "no possible float"),
    "5000 digits": (b"seed: " + b"9" * 5000, "no possible int"),
    "tagged number": (b'seed: !!int "abc"', "'abc' is no possible int"),
    "tagged date": (b'seed: !!timestamp "abc"', "'abc' is no possible timestamp"),
    "tagged truth": (b'seed: !!bool "abc"', "'abc' is no possible bool"),
    "not UTF-8": (b"name: \xff", "cannot be read: it is not UTF-8 text"),
    "key twice": (b"seed: 1\nname: x\nseed: 2", "'seed' is given twice"),
    "nested key twice": (b"loop: {steps: 1, lanes: 2, steps: 3}", "'steps' is given twice"),
    "deep": (b"name: " + b"[" * 9000, "nested too deeply"),
}


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    content, reason = IMPOSSIBLE[kind]
    file = tmp_path / "run.yaml"
    file.write_bytes(b"environment: {id: Hopper-v5}\n" + content)
    with pytest.raises(ConfigError, match=rf"run\.yaml.*(?s:.)*{re.escape(reason)}") as caught:
        load_config(file)
    assert len(str(caught.value)) < 400


def test_a_folder_is_no_config_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path} cannot be read: Is a directory"):
        load_config(tmp_path)


@dataclass(frozen=True)
class Inner:
    rule: bool = True
    names: list[str] = field(default_factory=list)
    scale: float = 1.0


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=lambda: Inner(False, ["a"]))


def test_what_a_section_leaves_out_is_as_its_owner_has_it() -> None:
    assert from_mapping(Outer, {}) == Outer()
    assert from_mapping(Outer, {"inner": {"scale": 3}}) == Outer(Inner(False, ["a"], 3.0))
    assert from_mapping(Outer, {"inner": {"rule": True, "names": []}}) == Outer(Inner())
    with pytest.raises(ConfigError, match=r"no setting inner\.scle; did you mean scale"):
        from_mapping(Outer, {"inner": {"scle": 3}})


def test_merged_keys_may_be_overridden(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    kwargs = "{<<: *base, b: 3}"
    file.write_text(f"environment:\n  id: A\n  kwargs: {{x: &base {{a: 1, b: 2}}, y: {kwargs}}}\n")
    assert load_config(file).environment.kwargs["y"] == {"a": 1, "b": 3}
