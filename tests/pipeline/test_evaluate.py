from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.evaluate import main
from storage.errors import CheckpointError, ConfigError


def test_numbers_are_repeatable(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run), "--episodes=3", "--json"])
    first = json.loads(capsys.readouterr().out)
    main([str(run / "checkpoints/best.ckpt"), "--episodes=3", "--json"])
    assert json.loads(capsys.readouterr().out) == first
    assert first["episodes"] == len(first["returns"]) == len(set(first["seeds"])) == 3
    assert first["mean_return"] == pytest.approx(sum(first["returns"]) / 3)


def test_other_seeds_play_other_episodes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run), "--episodes=2", "--json"])
    first = json.loads(capsys.readouterr().out)
    main([str(run), "--episodes=2", "--json", "--seed=1"])
    assert not set(first["seeds"]) & set(json.loads(capsys.readouterr().out)["seeds"])


def test_text(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run), "--episodes=1"])
    assert "InvertedPendulum-v5, trained for " in capsys.readouterr().out


def test_bad_requests(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="0 is too small"):
        main([str(run), "--episodes=0"])
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        main([str(tmp_path / "none.ckpt")])
    broken = tmp_path / "broken.ckpt"
    broken.write_bytes(b"no checkpoint")
    with pytest.raises(CheckpointError, match="cannot be read as a checkpoint"):
        main([str(broken)])
