"""`--print_config` of the verbs that take settings: what it prints is what would be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pipeline import cli, collect, train
from storage.errors import (
    CheckpointError,
    ConfigError,
    EnvironmentNotFoundError,
    UnsupportedSpaceError,
)
from tests.pipeline.conftest import small
from training.config_file import load_config, to_mapping


@pytest.mark.parametrize(
    ("option", "error", "message"),
    [
        ("--loop.steps=-5", ConfigError, "loop.steps is -5; it must be at least 1"),
        ("--loop.warmup=5000", ConfigError, "loop.warmup is 5,000 of loop.steps 1,100"),
        ("--replay.window=8", ConfigError, "replay.window is 8, smaller than agent.batch_size"),
        ("--environment.id=Nowhere-v0", EnvironmentNotFoundError, "no environment is called"),
        ("--agent.kind=dqn", UnsupportedSpaceError, "DQN acts in one Discrete space"),
        ("--replay.store=nowhere.store", FileNotFoundError, "nowhere.store"),
    ],
)
def test_what_training_refuses_is_not_printed(
    option: str, error: type[Exception], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = small(option)
    for words in (options, [*options, "--print_config"]):
        with pytest.raises(error, match=re.escape(message)):
            train.main(words)
    assert capsys.readouterr().out == ""


def test_the_command_refuses_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "--print_config", *small("--loop.steps=0")]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == (
        "",
        "sharpwave: error: loop.steps is 0; it must be at least 1\n",
    )


def test_what_is_printed_is_a_settings_file(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of a name that is taken: nothing is made."""
    assert train.main([*small("--name=small"), "--print_config"]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed) == yaml.safe_load((run / "config.yaml").read_text())
    (tmp_path / "again.yaml").write_text(printed)
    assert train.main([str(tmp_path / "again.yaml"), "--print_config", "--seed=3"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == yaml.safe_load(printed) | {"seed": 3}


def test_of_a_run_that_goes_on(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--resume", str(run), "--loop.steps=2000", "--print_config"]) == 0
    kept = to_mapping(load_config(run / "config.yaml"))
    assert yaml.safe_load(capsys.readouterr().out)["loop"] == kept["loop"] | {"steps": 2000}
    with pytest.raises(ConfigError, match=r"cannot change agent\.discount"):
        train.main(["--resume", str(run), "--agent.discount=0.9", "--print_config"])


def test_of_a_collection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["InvertedPendulum-v5", f"--store={tmp_path / 's'}", "--print_config"]
    assert collect.main([*words, "--steps=1e2"]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert (printed["steps"], printed["environment"]["id"]) == (100, "InvertedPendulum-v5")
    for refused in ("--steps=0", "--steps=9 --policy=nothing.ckpt", "--steps=9 --nonfinite=maybe"):
        with pytest.raises((ConfigError, CheckpointError), match=r"steps|nothing\.ckpt|nonfinite"):
            collect.main([*words, *refused.split()])
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "s").exists()
