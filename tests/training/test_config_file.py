"""Numbers as people write them, in files and overrides alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import ConfigError
from training.config import EnvironmentConfig, RunConfig
from training.config_file import load_config, save_config

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
