"""`sharpwave protocol atari` on a checkpoint of DQN that has learnt next to nothing."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from pipeline.protocol import atari_phase, main
from storage.errors import CheckpointError, ConfigError
from training.evaluation import play_episode

PHASE = ("--frames=700", "--noop-max=5")


def test_episodes_are_written_and_summed_up(pong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="not comparable: max_frames is 160, the .* 108000"):
        main(["atari", str(pong), *PHASE])
    told = capsys.readouterr()
    rows = pyarrow.parquet.read_table(pong / "atari_protocol.parquet").to_pylist()
    assert [row["episode"] for row in rows] == [0, 1, 2, 3, 4]
    assert {row["steps"] for row in rows} == {40}  # 160 frames: five episodes make 700
    game = ("frame_skip", "max_frames", "sticky", "full_actions", "wrappers", "complete")
    assert [rows[0][name] for name in game] == [4, 160, 0.0, False, "", True]
    same = {name: rows[0][name] for name in ("run", "method", "game", "environment", "run_seed")}
    assert same == {
        "run": "pong",
        "method": "DQN, ER, PSER",
        "game": "pong",
        "environment": "Atari/Pong",
        "run_seed": 3,
    }
    settings = json.loads(rows[0]["settings"])
    some = ("replay.sequences.mode", "environment.kwargs.screen", "environment.kwargs.stack")
    assert [settings[name] for name in some] == ["max", 36, 4]
    assert {"loop.steps", "agent.hidden", "replay.priorities.beta_draws"} < set(settings)
    assert not {"name", "seed", "agent.engine", "environment.id"} & set(settings)
    assert (rows[0]["training_steps"], rows[0]["epsilon"], rows[0]["noop_max"]) == (96, 0.001, 5)
    assert f"{pong}/checkpoints/last.ckpt: written after 96 steps\n" in told.out
    assert "Atari/Pong, 5 episodes, 200 steps; ε 0.001, up to 5 no-ops" in told.out
    assert "(random -20.7, human 14.6)" in told.out
    assert "320 of 700 frames\n" in told.err
    main(["scores", str(pong / "atari_protocol.parquet")])
    assert "DQN, ER, PSER: median" in capsys.readouterr().out


def test_json_and_another_place(
    pong: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "episodes.parquet"
    checkpoint = str(pong / "checkpoints/last.ckpt")
    main(["atari", checkpoint, *PHASE, "--seed=1", "--json", f"--output={file}"])
    told = capsys.readouterr()
    assert json.loads(told.out) == pyarrow.parquet.read_table(file).to_pylist()
    assert told.err == ""
    main(["atari", str(pong), *PHASE, "--json"])
    assert (
        json.loads(capsys.readouterr().out)[0]["reset_seed"]
        != json.loads(told.out)[0]["reset_seed"]
    )


def test_what_is_refused(run: Path, tmp_path: Path, pong: Path) -> None:
    with pytest.raises(ConfigError, match=r"InvertedPendulum-v5 is no Atari game"):
        main(["atari", str(run)])
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        main(["atari", str(tmp_path / "none.ckpt")])
    with pytest.raises(ConfigError, match=r"has no best\.ckpt"):
        main(["atari", str(pong), "--checkpoint=best"])
    for option, message in (
        ("--epsilon=2", "2 is not between 0 and 1"),
        ("--epsilon=x", "'x' is no number"),
        ("--frames=0", "0 is too small"),
        ("--noop-max=-1", "-1 is too small"),
        ("--noop-max=61", "61 is too large; it must be a whole number from 0 to 60: papers use 30"),
        (f"--seed={2**63}", "is too large, it must be below"),
        (f"--frames={2**63}", "is too large, it must be below"),
    ):
        with pytest.raises(ConfigError, match=message):
            main(["atari", str(pong), option])


def test_a_place_that_cannot_be_written_is_refused_before_playing(
    pong: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("it was played")

    monkeypatch.setattr(atari_phase, "play_phase", never)
    (tmp_path / "file").write_text("kept")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    for place, message in (
        ("none/out.parquet", "there is no folder"),
        ("", "is a folder"),
        ("file/out.parquet", "Not a directory"),
        ("pipe", "is no ordinary file"),
        ("x" * 250, "File name too long"),
        ("/proc/out.parquet", "cannot be written"),
    ):
        with pytest.raises(ConfigError, match=message):
            main(["atari", str(pong), *PHASE, f"--output={tmp_path / place}"])
    with pytest.raises(AssertionError, match="it was played"):
        main(["atari", str(pong), *PHASE, f"--output={tmp_path / 'file'}"])
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "file").read_text() == "kept"


def test_an_interrupt_keeps_what_was_played(
    pong: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out.parquet"
    words = ["atari", str(pong), *PHASE, f"--output={file}"]
    calls = itertools.count(1)

    def stopped(*given: Any) -> Any:
        if not next(calls) % 3:
            raise KeyboardInterrupt
        return play_episode(*given)

    with monkeypatch.context() as patched:
        patched.setattr(atari_phase, "play_episode", stopped)
        for _ in range(2):  # what an earlier interrupt has left is replaced
            with pytest.raises(KeyboardInterrupt, match=rf"2 episodes, 320 of 700 .* in {file}, m"):
                main(words)
            assert [each.name for each in tmp_path.iterdir()] == ["out.parquet"]
    part = pyarrow.parquet.read_table(file).to_pylist()
    assert {row.pop("complete") for row in part} == {False}
    with pytest.raises(ConfigError, match="that was interrupted, after 2 episodes"):
        main(["scores", str(file)])
    main(words)
    whole = pyarrow.parquet.read_table(file).to_pylist()
    assert {row.pop("complete") for row in whole} == {True}
    assert whole[:2] == part

    monkeypatch.setattr(atari_phase, "play_episode", stopped)
    beside = tmp_path / "out.incomplete.parquet"
    with pytest.raises(KeyboardInterrupt, match=f"in {beside}, marked as incomplete"):
        main(words)
    assert pyarrow.parquet.read_table(file).num_rows == len(whole)


def test_an_interrupt_in_the_first_episode_writes_nothing(
    pong: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(atari_phase, "play_episode", stopped)
    with pytest.raises(KeyboardInterrupt, match="nothing was written"):
        main(["atari", str(pong), *PHASE, f"--output={tmp_path / 'out.parquet'}"])
    assert not list(tmp_path.iterdir())
