"""How checkpoints replace each other on the disk."""

from __future__ import annotations

import os
import random
import signal
import time
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

from storage.errors import CheckpointError, DiskFullError
from tests.training.tiny import run, tiny_config
from training.checkpoints.checkpoint_file import read_checkpoint
from training.checkpoints.checkpoint_io import AtomicCheckpointIO, remove_leftovers


def _number(path: Path) -> int:
    return torch.load(path, weights_only=True)["n"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint({"n": 1}, path)

    def dying(checkpoint, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", dying)
    with pytest.raises(KeyboardInterrupt):
        AtomicCheckpointIO().save_checkpoint({"n": 2}, path)
    assert _number(path) == 1
    assert [each.name for each in path.parent.iterdir()] == ["last.ckpt"]


def test_the_checkpoint_before_the_last_one_stays(tmp_path):
    last, previous = tmp_path / "last.ckpt", tmp_path / "previous.ckpt"
    saver = AtomicCheckpointIO()
    for number in range(4):
        saver.save_checkpoint({"n": number}, last)
        assert _number(last) == number
        assert previous.exists() == (number > 0)
        if number:
            assert _number(previous) == number - 1
    saver.save_checkpoint({"n": 9}, tmp_path / "best.ckpt")
    assert sorted(os.listdir(tmp_path)) == ["best.ckpt", "last.ckpt", "previous.ckpt"]


def test_one_file_under_both_names_is_no_obstacle(tmp_path):
    """As a kill leaves it between the two renames of a save."""
    last, previous = tmp_path / "last.ckpt", tmp_path / "previous.ckpt"
    AtomicCheckpointIO().save_checkpoint({"n": 1}, last)
    previous.hardlink_to(last)
    AtomicCheckpointIO().save_checkpoint({"n": 2}, last)
    assert (_number(previous), _number(last)) == (1, 2)
    assert sorted(os.listdir(tmp_path)) == ["last.ckpt", "previous.ckpt"]


def test_a_file_system_without_second_names_gets_a_copy(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    for number in (1, 2):
        AtomicCheckpointIO().save_checkpoint({"n": number}, tmp_path / "last.ckpt")
    assert (_number(tmp_path / "previous.ckpt"), _number(tmp_path / "last.ckpt")) == (1, 2)


@pytest.mark.parametrize("durability", ["process", "fsync"])
def test_fsync_has_the_bytes_on_the_device_before_the_name(tmp_path, monkeypatch, durability):
    calls = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(descriptor):
        calls.append(("fsync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        fsync(descriptor)

    def watched_replace(path, target):
        calls.append(("rename", path.name))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    AtomicCheckpointIO(durability).save_checkpoint({"n": 1}, tmp_path / "last.ckpt")
    temporary = calls[-2][1] if durability == "fsync" else calls[-1][1]
    renamed = [("rename", temporary)]
    synced = [("fsync", temporary), *renamed, ("fsync", tmp_path.name)]
    assert calls == (synced if durability == "fsync" else renamed)


def test_a_full_disk_leaves_both_checkpoints(small_disk):
    last = small_disk / "last.ckpt"
    saver = AtomicCheckpointIO()
    for number in (1, 2):
        saver.save_checkpoint({"n": number}, last)
    with pytest.raises(DiskFullError, match=r"last\.ckpt needs"):
        saver.save_checkpoint({"n": 3, "large": torch.zeros(2**22)}, last)
    assert (_number(small_disk / "previous.ckpt"), _number(last)) == (1, 2)
    assert sorted(os.listdir(small_disk)) == ["last.ckpt", "previous.ckpt"]


def _save_forever(path: Path) -> None:
    saver, number = AtomicCheckpointIO(), 0
    while True:
        number += 1
        saver.save_checkpoint({"n": number, "filler": torch.full((200_000,), number)}, path)


@pytest.mark.parametrize(
    "kills", [pytest.param(12, id="few"), pytest.param(300, id="many", marks=pytest.mark.soak)]
)
def test_killed_at_any_instant_of_saving_both_checkpoints_are_whole(tmp_path, kills):
    """Processes that do nothing but save are killed, one after the other."""
    last, previous = tmp_path / "last.ckpt", tmp_path / "previous.ckpt"
    chance = random.Random(3)
    for _ in range(kills):
        known = _number(last) if last.exists() else 0
        child = get_context("fork").Process(target=_save_forever, args=(last,))
        child.start()
        try:
            while child.is_alive() and (not last.exists() or _whole(last) == known):
                time.sleep(0.002)
            time.sleep(chance.random() * 0.03)
        finally:
            child.kill()
            child.join()
        assert child.exitcode == -signal.SIGKILL
        number = _whole(last)
        if previous.exists():
            # The same file under both names, the one before, or the last of the killed process.
            assert _whole(previous) in (number, number - 1, known)
    left = set(os.listdir(tmp_path)) - {"last.ckpt", "previous.ckpt"}
    assert left <= {name for name in left if name.count(".") == 3}
    remove_leftovers(tmp_path)
    assert set(os.listdir(tmp_path)) == {"last.ckpt", "previous.ckpt"}


def _whole(path: Path) -> int:
    content = torch.load(path, weights_only=True)
    assert bool((content["filler"] == content["n"]).all())
    return int(content["n"])


def test_a_run_removes_what_killed_saves_left(tmp_path):
    config = tiny_config(rounds=8)
    run(config, tmp_path, max_steps=4)
    folder = tmp_path / "checkpoints"
    (folder / "last.ckpt.4711.3").write_bytes(b"half")
    (folder / "previous.ckpt.4711.4").write_bytes(b"half")
    (folder / "mine.ckpt").write_bytes(b"not ours")
    run(config, tmp_path, resume=True)
    assert set(os.listdir(folder)) == {"last.ckpt", "previous.ckpt", "mine.ckpt"}


def test_lightning_loads_through_the_same_door(tmp_path):
    path = tmp_path / "other.ckpt"
    torch.save({"code": path}, path)
    for weights_only in (False, None, True):
        with pytest.raises(CheckpointError, match=r"other\.ckpt"):
            AtomicCheckpointIO().load_checkpoint(path, weights_only=weights_only)
    run(tiny_config(rounds=8), tmp_path / "run")
    last = tmp_path / "run/checkpoints/last.ckpt"
    loaded = AtomicCheckpointIO().load_checkpoint(last)
    assert loaded["global_step"] == read_checkpoint(last)["global_step"] == 8
