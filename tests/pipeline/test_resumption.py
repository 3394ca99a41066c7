"""`sharpwave train --resume` with checkpoints, stores and settings that are not as they were."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import storage
from pipeline.resumption import check_changes
from pipeline.train import _resumed_run, main, train
from storage.errors import CheckpointError, ConfigError
from tests.pipeline.conftest import run_in
from training.checkpoints.checkpoint_file import read_checkpoint
from training.config_file import load_config

MORE = "--loop.steps=1132"


@pytest.fixture
def copy(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of runs/small, from inside the folder that holds `runs`."""
    shutil.copytree(run, tmp_path / "runs/small")
    monkeypatch.chdir(tmp_path)
    return Path("runs/small")


def steps(path: Path) -> int:
    return int(read_checkpoint(path)["sharpwave"]["counters"]["environment_steps"])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_damaged_last_checkpoint_gives_way_to_the_one_before(copy: Path) -> None:
    """The run goes on from there by itself, and says so; nothing is deleted."""
    checkpoints = copy / "checkpoints"
    before = steps(checkpoints / "previous.ckpt")
    assert before == 1024
    flip(checkpoints / "last.ckpt")
    damaged = (checkpoints / "last.ckpt").read_bytes()
    said = (
        r"last\.ckpt cannot be read.*: going on from the one before it, .*previous\.ckpt, at step"
    )
    with pytest.warns(UserWarning, match=rf"{said} 1,024; .*kept as last\.damaged"):
        assert main(["--resume", str(copy), MORE]) == 0
    assert (checkpoints / "last.damaged").read_bytes() == damaged
    assert steps(checkpoints / "last.ckpt") == 1132
    with storage.open(copy / "store") as store:
        assert store.n_steps == 1132
    assert os.listdir(copy / "store/orphans"), "what came after step 1,024 was set aside"


def test_a_missing_last_checkpoint_gives_way_to_the_one_before(copy: Path) -> None:
    (copy / "checkpoints/last.ckpt").unlink()
    with pytest.warns(UserWarning, match=r"there is no checkpoint .*last\.ckpt: going on from"):
        main(["--resume", str(copy), MORE])
    assert sorted(os.listdir(copy / "checkpoints")) == ["best.ckpt", "last.ckpt", "previous.ckpt"]


def test_a_folder_in_place_of_the_last_checkpoint_is_set_aside(copy: Path) -> None:
    last = copy / "checkpoints/last.ckpt"
    last.unlink()
    last.mkdir()
    with pytest.warns(UserWarning, match=r"last\.ckpt is a folder.*: going on from"):
        main(["--resume", str(copy), MORE])
    assert last.is_file()
    assert (copy / "checkpoints/last.damaged").is_dir()


def test_a_checkpoint_that_was_written_meanwhile_is_not_set_aside(copy: Path) -> None:
    """Another process had gone on with the run between our look and our hold of the folder."""
    last = copy / "checkpoints/last.ckpt"
    whole = last.read_bytes()
    flip(last)
    with pytest.warns(UserWarning, match="going on from the one before"):
        resumed = _resumed_run(copy, [MORE])
    last.write_bytes(whole)
    with pytest.raises(ConfigError, match="another process has gone on with this run"):
        train(resumed)
    assert last.read_bytes() == whole


def test_a_file_in_place_of_tensorboards_folder_is_one_line_before_the_first_step(
    copy: Path,
) -> None:
    before = (copy / "checkpoints/last.ckpt").read_bytes()
    shutil.rmtree(copy / "tensorboard")
    (copy / "tensorboard").write_text("mine")
    with pytest.raises(ConfigError, match=r"tensorboard is a file, .*--logging\.tensorboard=false"):
        main(["--resume", str(copy), MORE])
    assert (copy / "checkpoints/last.ckpt").read_bytes() == before


@pytest.mark.parametrize("gone", [(), ("last",), ("previous",), ("last", "previous")])
def test_where_last_and_previous_are_damaged_or_gone_the_best_one_is_gone_on_from(
    copy: Path, tmp_path: Path, gone: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """It holds the whole state as any other: the run ends as one that lost nothing."""
    shutil.copytree(copy, tmp_path / "runs/whole")
    main(["--resume", "runs/whole", MORE])
    checkpoints = copy / "checkpoints"
    shutil.copy(checkpoints / "previous.ckpt", checkpoints / "best.ckpt")
    for name in ("last", "previous"):
        if name in gone:
            (checkpoints / f"{name}.ckpt").unlink()
        else:
            flip(checkpoints / f"{name}.ckpt")
    said = r"going on from the best evaluation's, .*best\.ckpt, at step 1,024"
    with pytest.warns(UserWarning, match=said) as warned:
        assert main(["--resume", str(copy), MORE]) == 0
    assert "going on from step 1,024; 76 later steps are set aside" in capsys.readouterr().out
    text = next(str(each.message) for each in warned if "going on" in str(each.message))
    damaged = {"last", "previous"} - set(gone)
    for name in damaged:
        assert f"{name}.ckpt is kept as {name}.damaged" in text
    assert {each.stem for each in checkpoints.glob("*.damaged")} == damaged
    hashes = {storage.content_hash(run / "store") for run in (copy, tmp_path / "runs/whole")}
    assert len(hashes) == 1
    assert steps(checkpoints / "last.ckpt") == 1132


def test_damaged_checkpoints_are_all_named(copy: Path) -> None:
    flip(copy / "checkpoints/last.ckpt")
    flip(copy / "checkpoints/previous.ckpt")
    flip(copy / "checkpoints/best.ckpt")
    message = (
        r"last\.ckpt.*previous\.ckpt.*best\.ckpt.*--offline runs/small/store, under another --name"
    )
    with pytest.raises(CheckpointError, match=message):
        main(["--resume", str(copy), MORE])
    (copy / "checkpoints/previous.ckpt").unlink()
    (copy / "checkpoints/best.ckpt").unlink()
    with pytest.raises(CheckpointError, match=r"last\.ckpt.*--offline runs/small/store"):
        main(["--resume", str(copy), MORE])
    assert (copy / "checkpoints/last.ckpt").is_file()


def test_settings_that_were_changed_since_are_named(copy: Path) -> None:
    kept = yaml.safe_load((copy / "config.yaml").read_text())
    kept["seed"] = 7
    kept["agent"]["discount"] = 0.9
    kept["logging"]["every_steps"] = 999
    (copy / "config.yaml").write_text(yaml.safe_dump(kept))
    message = r"config\.yaml was changed since .*last\.ckpt.*: .*seed is 7, was 0"
    with pytest.raises(ConfigError, match=message) as caught:
        main(["--resume", str(copy), MORE])
    assert "agent.discount is 0.9, was 0.995" in str(caught.value)
    assert "logging" not in str(caught.value)


@pytest.mark.parametrize(
    "word",
    [
        "loop.steps=7777",
        "loop.updates_per_step=0.5",
        "loop.sync_seconds=2",
        "replay.page_limit=99999",
        "evaluation.max_steps=7",
    ],
)
def test_the_refusal_says_what_may_differ_and_what_of_it_changes_what_follows(
    run: Path, word: str
) -> None:
    with pytest.raises(ConfigError, match="cannot change seed") as caught:
        main(["--resume", str(run), "--seed=7"])
    named = re.search(
        r"differ: (.*), which hold from here on, and .* the learning \((.*)\)\.", str(caught.value)
    )
    assert named
    later, harmless = named[1].split(" and "), named[2].split(", ")
    assert later == ["loop.steps", "loop.updates_per_step"]
    name = word.partition("=")[0]
    assert name in later or {name, name.partition(".")[0]} & set(harmless)
    own = ["loop.durability=fsync", word]
    before = load_config(run / "config.yaml", ["loop.durability=fsync"])
    check_changes(before, load_config(run / "config.yaml", own))


def test_durability_may_be_changed(copy: Path) -> None:
    words = ["--loop.durability=fsync", "--loop.sync_episodes=4", "--loop.sync_seconds=1"]
    main(["--resume", str(copy), MORE, *words])
    kept = yaml.safe_load((copy / "config.yaml").read_text())
    assert (kept["loop"]["durability"], kept["loop"]["sync_episodes"]) == ("fsync", 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--loop.durability=power"], r"durability"),
        (["--loop.durability=fsync", "--loop.sync_episodes=0"], "sync_episodes is 0"),
        (["--loop.durability=fsync", "--loop.sync_seconds=-1"], r"sync_seconds is -1"),
        (["--loop.sync_episodes=8"], r"only loop\.durability fsync does"),
    ],
)
def test_impossible_durability_is_refused(run: Path, words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        main(["--resume", str(run), MORE, *words])


def test_a_store_that_is_older_than_the_checkpoint_is_named(copy: Path, tmp_path: Path) -> None:
    """As when a copy of yesterday is put back."""
    shutil.copytree(copy / "store", tmp_path / "older")
    main(["--resume", str(copy), "--loop.steps=1400"])
    shutil.rmtree(copy / "store")
    shutil.copytree(tmp_path / "older", copy / "store")
    with pytest.raises(CheckpointError, match=r"last\.ckpt: .*small/store") as caught:
        main(["--resume", str(copy), "--loop.steps=1500"])
    assert "Put back" in str(caught.value)


def test_the_store_of_another_run_is_named(copy: Path) -> None:
    with storage.open(copy / "store") as store:
        spec = store.env_spec
    shutil.rmtree(copy / "store")
    storage.create(copy / "store", spec).close()
    message = r"last\.ckpt: the checkpoint belongs to the store .*runs/small/store is"
    with pytest.raises(CheckpointError, match=message):
        main(["--resume", str(copy), MORE])
    shutil.rmtree(copy / "store")
    with pytest.raises(storage.errors.StoreNotFoundError, match="small/store"):
        main(["--resume", str(copy), MORE])


@pytest.fixture
def frozen(copy: Path) -> Iterator[Path]:
    """The run below a read-only mount; skips, saying why, where none can be made."""
    for command in (["mount", "--bind", copy, copy], ["mount", "-o", "remount,bind,ro", copy]):
        made = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if made.returncode:
            pytest.skip(f"mounting read-only is not allowed here: {made.stderr.strip()}")
    yield copy
    subprocess.run(["umount", "-l", str(copy)], check=True)


def test_a_read_only_run_is_one_line(frozen: Path, tmp_path: Path) -> None:
    done = run_in(tmp_path, "train", "--resume", frozen, MORE, code=2)
    (line,) = done.stderr.splitlines()
    assert line.startswith("sharpwave: error: ")
    assert "runs/small" in line
    assert "ead-only" in line


def test_a_checkpoint_that_cannot_be_written_stops_the_run_in_one_line(
    copy: Path, tmp_path: Path
) -> None:
    """A folder of checkpoints that takes no new file."""
    folder = copy / "checkpoints"
    changed = subprocess.run(
        ["chattr", "+i", str(folder)], capture_output=True, text=True, check=False
    )
    if changed.returncode:
        pytest.skip(f"a folder cannot be made immutable here: {changed.stderr.strip()}")
    try:
        done = run_in(tmp_path, "train", "--resume", copy, MORE, code=2)
    finally:
        subprocess.run(["chattr", "-i", str(folder)], check=True)
    assert "Traceback" not in done.stderr
    assert "checkpoints/last.ckpt" in done.stderr.splitlines()[-1]
