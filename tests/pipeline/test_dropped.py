"""What inspect tells of segments that retention dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import storage
from pipeline.inspect import main
from storage.retention import drop
from tests.storage.zoo import play, tiny_spec


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Twelve episodes, whose first two segments were dropped."""
    made = storage.create(tmp_path / "store", tiny_spec())
    with made.writer(run="own", row_budget=10, capacity=256) as writer:
        for episode in range(12):
            play(writer, 0, episode)
    drop(made, [0, 1])
    made.close()
    return made.path


def test_dropped_episodes_are_counted_and_told(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(store), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["dropped"]["segments"] == 2
    assert told["dropped"]["episodes"] + told["episodes"] == 12
    lengths = [1 + 5 * episode % 9 for episode in range(12)]
    assert told["dropped"]["steps"] + told["steps"] == sum(lengths)
    assert told["lengths"]["mean"] == pytest.approx(sum(lengths) / 12)
    assert sum(told["endings"].values()) == 12
    assert told["problems"] == []
    main([str(store)])
    dropped = told["dropped"]
    said = f"dropped: 2 segments, {dropped['episodes']} episodes, {dropped['steps']} steps"
    assert said in capsys.readouterr().out
