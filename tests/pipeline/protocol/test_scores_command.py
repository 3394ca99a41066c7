"""Tables of what the Atari protocol has played, from files written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from pipeline.protocol import main
from pipeline.protocol.parquet_file import write_rows
from pipeline.protocol.played import played_schema, played_text
from storage.errors import ConfigError


def rows(game: str, scores: list[float], method: str = "DQN, ER, PSER", seed: int = 0) -> list[Any]:
    same = {
        "run": f"{game}-{seed}",
        "method": method,
        "game": game,
        "environment": "Atari/Pong",
        "checkpoint": "best.ckpt",
        "training_steps": 500,
        "run_seed": seed,
        "epsilon": 0.001,
        "noop_max": 30,
        "frames_budget": 500_000,
        "phase_seed": 0,
        "steps": 100,
    }
    return [
        same | {"episode": number, "reset_seed": number, "score": score}
        for number, score in enumerate(scores)
    ]


def written(path: Path, *parts: list[Any]) -> str:
    write_rows([row for part in parts for row in part], played_schema(), path)
    return str(path)


def table(path: Path) -> dict[str, Any]:
    return {row.pop("game"): row for row in pyarrow.parquet.read_table(path).to_pylist()}


def test_scores_beside_humans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Each run counts once, however many episodes it played.
    pong = written(
        tmp_path / "pong", rows("pong", [14.6, 14.6, 14.6]), rows("pong", [-20.7], seed=1)
    )
    freeway = written(tmp_path / "freeway", rows("freeway", [29.6]))
    main(["scores", pong, freeway])
    out = capsys.readouterr().out
    assert "DQN, ER, PSER: median 75.0 %, mean 75.0 % over 2 games" in out
    assert "Video Pinball" not in out
    found = table(tmp_path / "atari_scores.parquet")
    assert (found["pong"]["runs"], found["freeway"]["runs"]) == (2, 1)
    assert found["pong"]["score"] == pytest.approx(-3.05)
    assert found["pong"]["human_normalised"] == pytest.approx(50.0)
    assert found["freeway"]["human_normalised"] == pytest.approx(100.0)
    assert found["pong"]["improvement"] is None


def test_improvement_over_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = written(
        tmp_path / "own", rows("freeway", [14.8]), rows("pong", [0.0]), rows("enduro", [0.0])
    )
    per = written(
        tmp_path / "per", *(rows(game, [0.0], "DQN, ER, PER") for game in ("freeway", "pong"))
    )
    main(["scores", own, "--baseline", per, f"--output={tmp_path / 'out.parquet'}"])
    out = capsys.readouterr().out
    assert "DQN, ER, PER: median 29.3 %, mean 29.3 % over 2 games" in out
    told = "improvement of DQN, ER, PSER over DQN, ER, PER: median 25.0 %, mean 25.0 % over 2 games"
    assert told in out
    found = table(tmp_path / "out.parquet")
    assert found["freeway"]["improvement"] == pytest.approx(50.0)
    assert found["pong"]["improvement"] == 0.0
    assert found["enduro"]["baseline_score"] is None


def test_the_choice_of_video_pinball_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "pinball", rows("video_pinball", [300_000.0]))
    main(["scores", file])
    out = capsys.readouterr().out
    assert "median 20,109.4 %" in out
    assert "normalised by a random score of 16,256.9" in out
    main(["scores", file, "--video-pinball-random=0", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["human_normalised"] == pytest.approx(
        1698.0, abs=0.1
    )
    main(["scores", file, "--video-pinball-random=0"])
    assert "normalised by a random score of 0.0" in capsys.readouterr().out


def test_what_cannot_be_tabled(tmp_path: Path) -> None:
    mixed = written(tmp_path / "a", rows("pong", [0.0]), rows("pong", [0.0], "DQN, ER"))
    with pytest.raises(ConfigError, match=r"are of DQN, ER, PSER and DQN, ER; name files of one"):
        main(["scores", mixed])
    with pytest.raises(ConfigError, match=r"no human score of the game 'air_raid'"):
        main(["scores", written(tmp_path / "b", rows("air_raid", [0.0]))])
    with pytest.raises(ConfigError, match=r"none\.parquet cannot be read as Parquet"):
        main(["scores", str(tmp_path / "none.parquet")])
    (tmp_path / "text").write_text("no table")
    with pytest.raises(ConfigError, match="text cannot be read as Parquet"):
        main(["scores", str(tmp_path / "text")])
    main(["scores", written(tmp_path / "c", rows("pong", [0.0]))])
    with pytest.raises(ConfigError, match=r"atari_scores\.parquet has columns game, runs"):
        main(["scores", str(tmp_path / "atari_scores.parquet")])


def test_a_summary_of_one_checkpoint() -> None:
    text = played_text(rows("pong", [14.6, -20.6]))
    assert text == (
        "best.ckpt: written after 500 steps\n"
        "Atari/Pong, 2 episodes, 200 steps; ε 0.001, up to 30 no-ops\n"
        "score -3.0 ± 17.6  (-20.6 to 14.6)\n"
        "human-normalised 50.1 %  (random -20.7, human 14.6)"
    )
    assert played_text(rows("air_raid", [1.0])).endswith(
        "no human score of air_raid to compare with"
    )
