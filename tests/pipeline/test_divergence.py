"""What the command says of learning that leaves the numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

import storage
from pipeline.cli import main
from tests.pipeline.conftest import small

WORDS = ("--name=lost", "--loop.steps=640", "--agent.engine=eager", "--evaluation.episodes=0")


def test_it_names_the_learning_and_no_way_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *small(*WORDS, "--agent.learning_rate=1e30")]) == 2
    kept, error = capsys.readouterr().err.strip().splitlines()[-2:]
    assert error.startswith("sharpwave: error: learning diverged: ")
    assert "Start a new run with a smaller agent.learning_rate" in error
    with storage.open(tmp_path / "runs/lost/store") as store:
        assert store.n_steps > 0
    assert kept.startswith("sharpwave: the episodes of ")
    assert kept.endswith("steps are kept in runs/lost/store")
