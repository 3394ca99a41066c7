"""`sharpwave protocol atari` on a checkpoint of DQN that has learnt next to nothing."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import torch

from pipeline.protocol import atari_phase, main
from storage.errors import CheckpointError, ConfigError
from training.checkpoints.checkpoint_file import read_checkpoint
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
    file, beside = tmp_path / "episodes.parquet", tmp_path / "beside.parquet"
    checkpoint = str(pong / "checkpoints/last.ckpt")
    main(["atari", checkpoint, *PHASE, "--seed=1", "--json", f"--output={file}"])
    told = capsys.readouterr()
    assert json.loads(told.out) == pyarrow.parquet.read_table(file).to_pylist()
    assert told.err == ""
    main(["atari", str(pong), *PHASE, "--json", f"--output={beside}"])
    assert (
        json.loads(capsys.readouterr().out)[0]["reset_seed"]
        != json.loads(told.out)[0]["reset_seed"]
    )


def test_epsilon_is_the_agent_s_unless_it_is_given(
    pong: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = read_checkpoint(pong / "checkpoints/last.ckpt")
    content["sharpwave"]["config"]["agent"]["evaluation_epsilon"] = 0.25
    torch.save(content, tmp_path / "other.ckpt")
    for number, (words, expected) in enumerate((([], 0.25), (["--epsilon=0.5"], 0.5))):
        output = f"--output={tmp_path / str(number)}.parquet"
        main(["atari", str(tmp_path / "other.ckpt"), *PHASE, *words, output, "--json"])
        assert json.loads(capsys.readouterr().out)[0]["epsilon"] == expected


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


def _other(words: list[str], options: list[str]) -> list[str]:
    """`words` without what `options` says otherwise."""
    names = tuple(option.partition("=")[0] for option in options)
    return [word for word in words if not word.startswith(names)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--epsilon=0.5"], r"epsilon 0\.001 there, 0\.5 now; give another place by --output"),
        (["--frames=500"], "frames_budget 700 there, 500 now"),
        (["--seed=1"], "phase_seed 0 there, 1 now"),
        (["--noop-max=0", "--seed=2"], "noop_max 5 there, 0 now; phase_seed 0 there, 2 now"),
    ],
)
def test_a_whole_phase_is_not_replaced_by_another(
    pong: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    told: str,
) -> None:
    file = tmp_path / "out.parquet"
    words = ["atari", str(pong), *PHASE, f"--output={file}"]
    main(words)
    before = file.read_bytes()
    main(words)  # the same again
    assert file.read_bytes() == before
    with monkeypatch.context() as patched:
        patched.setattr(atari_phase, "play_phase", None)
        with pytest.raises(ConfigError, match=f"out.parquet holds a whole phase .*{told}"):
            main([*_other(words, options), *options])
    assert file.read_bytes() == before


def test_a_phase_of_another_run_or_version(pong: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    words = ["atari", str(pong), *PHASE, f"--output={file}"]
    main(words)
    table = pyarrow.parquet.read_table(file)

    def write(**changes: Any) -> None:
        rows = [row | changes for row in table.to_pylist()]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, table.schema), file)

    settings = json.loads(table["settings"][0].as_py())
    write(settings=json.dumps(settings | {"agent.hidden": [9]}), checkpoint="x/best.ckpt")
    told = r"the run's agent\.hidden; checkpoint best\.ckpt there, last\.ckpt now; give"
    with pytest.raises(ConfigError, match=told):
        main(words)
    for changes in ({"epsilon": 0.5, "complete": False}, {"checkpoint": "elsewhere/last.ckpt"}):
        write(**changes)
        main(words)
        assert pyarrow.parquet.read_table(file) == table
    old = table.drop_columns(["settings", "sticky"])
    pyarrow.parquet.write_table(old, file)
    main(words)  # which `protocol scores` asks for
    assert pyarrow.parquet.read_table(file) == table
    pyarrow.parquet.write_table(old, file)
    with pytest.raises(ConfigError, match="phase_seed 0 there, 1 now"):
        main([*words, "--seed=1"])


def test_sigterm_keeps_what_was_played(pong: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    command = [sys.executable, "-m", "pipeline.cli", "protocol", "atari", str(pong)]
    phase = ["--frames=50000", f"--output={file}"]
    with subprocess.Popen([*command, *phase], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "of 50,000 frames" in line)
        process.terminate()
        told = process.stderr.read()
    assert process.returncode == -signal.SIGTERM
    rows = pyarrow.parquet.read_table(file).to_pylist()
    assert not any(row["complete"] for row in rows)
    assert 4 * sum(row["steps"] for row in rows) >= int(line.partition(" ")[0].replace(",", ""))
    assert f"sharpwave: terminated. {len(rows)} episodes, " in told
    assert f"are in {file}, marked as incomplete.\n" in told


def test_an_interrupt_in_the_first_episode_writes_nothing(
    pong: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(atari_phase, "play_episode", stopped)
    with pytest.raises(KeyboardInterrupt, match="nothing was written"):
        main(["atari", str(pong), *PHASE, f"--output={tmp_path / 'out.parquet'}"])
    assert not list(tmp_path.iterdir())
