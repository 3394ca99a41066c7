"""The settings file and the best checkpoint of a run, when it is moved, resumed or refused."""

from __future__ import annotations

import dataclasses
import os
import shutil
import warnings
from pathlib import Path

import pytest
from lightning.pytorch.callbacks import Callback

import storage
from storage.errors import SharpwaveError
from storage.lock import SegmentLock
from tests.training.tiny import ROUND, longer, run, tiny_config
from training import evaluation
from training.assembly import build, trainer
from training.checkpoints.checkpoint_file import read_checkpoint
from training.checkpoints.checkpoint_io import AtomicCheckpointIO
from training.config import LoggingConfig
from training.evaluation import Episode
from training.loading import load


def _steps(checkpoint: Path) -> int:
    return read_checkpoint(checkpoint)["sharpwave"]["counters"]["environment_steps"]


@pytest.fixture
def returns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the next evaluation episodes return; 0 when nothing is left."""
    given: list[float] = []
    monkeypatch.setattr(
        evaluation,
        "play_episode",
        lambda env, act, seed, *_: Episode(seed, given.pop(0) if given else 0.0, 1),
    )
    return given


@pytest.mark.parametrize("copy", [False, True])
def test_a_moved_run_keeps_its_best_policy(tmp_path, returns, copy):
    config = tiny_config(rounds=12, evaluate_every=5 * ROUND, checkpoint_rounds=4)
    returns += [50.0, 50.0, 7.0, 7.0]
    run(config, tmp_path / "before")
    (shutil.copytree if copy else shutil.move)(tmp_path / "before", tmp_path / "after")
    best = tmp_path / "after" / "checkpoints" / "best.ckpt"
    assert _steps(best) == 10 * ROUND
    kept = best.read_bytes()
    returns += [20.0, 20.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        run(longer(config, 16), tmp_path / "after", resume=True)
    assert best.read_bytes() == kept
    returns += [60.0, 60.0]
    run(longer(config, 20), tmp_path / "after", resume=True)
    assert _steps(best) == 20 * ROUND


def test_the_best_policy_outlives_a_return_to_an_older_checkpoint(tmp_path, returns):
    """The run was killed after an evaluation that its last checkpoint does not know of."""
    config = tiny_config(rounds=8, evaluate_every=5 * ROUND, checkpoint_rounds=4)
    run(config, tmp_path)
    last, older = tmp_path / "checkpoints" / "last.ckpt", tmp_path / "older.ckpt"
    shutil.copy(last, older)
    returns += [50.0, 50.0]
    run(longer(config, 12), tmp_path, resume=True)
    shutil.copy(older, last)
    returns += [20.0, 20.0]
    run(longer(config, 12), tmp_path, resume=True)
    best = read_checkpoint(tmp_path / "checkpoints" / "best.ckpt")
    (score,) = (state["score"] for state in best["callbacks"].values() if "score" in state)
    assert float(score) == 50.0


def test_a_kill_behind_the_last_checkpoint_has_left_the_best_one(tmp_path, returns, monkeypatch):
    """Both are due in one round; who goes on from the last never plays that evaluation again."""
    saved = []
    save = AtomicCheckpointIO.save_checkpoint

    def kept(self, checkpoint, path, storage_options=None):
        saved.append(Path(path).name)
        save(self, checkpoint, path)

    monkeypatch.setattr(AtomicCheckpointIO, "save_checkpoint", kept)
    run(tiny_config(rounds=8, evaluate_every=4 * ROUND, checkpoint_rounds=4), tmp_path)
    assert saved[-2:] == ["best.ckpt", "last.ckpt"]


def test_a_damaged_best_policy_is_kept_and_said(tmp_path, returns):
    config = tiny_config(rounds=8, evaluate_every=4 * ROUND, checkpoint_rounds=4)
    run(config, tmp_path)
    best = tmp_path / "checkpoints/best.ckpt"
    data = best.read_bytes()[:-100]
    best.write_bytes(data)
    with pytest.warns(UserWarning, match=r"best\.ckpt cannot be read.*kept as best\.damaged"):
        run(longer(config, 12), tmp_path, resume=True)
    assert best.with_name("best.damaged").read_bytes() == data
    assert _steps(best) == 12 * ROUND


def test_without_evaluation_or_with_other_intervals_nothing_is_warned_of(tmp_path, returns):
    config = tiny_config(rounds=10, evaluate_every=5 * ROUND, checkpoint_rounds=4)
    run(config, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        run(tiny_config(rounds=12, checkpoint_rounds=2), tmp_path, resume=True)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_refused_resume_changes_nothing(tmp_path):
    config = tiny_config(rounds=8)
    config = dataclasses.replace(config, logging=LoggingConfig(progress=False))
    run(config, tmp_path / "run")
    with storage.open(tmp_path / "run" / "store", mode="r+") as store:
        lock = SegmentLock.acquire(store.paths, store.segments[0].id)
    before = _files(tmp_path)
    try:
        with pytest.raises(SharpwaveError):
            run(longer(config, 12), tmp_path / "run", resume=True)
    finally:
        lock.release()
    assert _files(tmp_path) == before
    run(longer(config, 12), tmp_path / "run", resume=True)
    assert len(list((tmp_path / "run" / "tensorboard").glob("events*"))) == 2
    assert "steps: 192" in (tmp_path / "run" / "config.yaml").read_text()


def test_a_run_that_cannot_begin_leaves_nothing(tmp_path):
    config = tiny_config(rounds=8)
    run(config, tmp_path / "run")
    before = _files(tmp_path)
    with pytest.raises(SharpwaveError, match="store"):
        run(longer(config, 9), tmp_path / "run")
    assert _files(tmp_path) == before


class _Interrupt(Callback):
    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize("worded", [False, True])
def test_an_interrupted_run_says_how_to_go_on_and_that_it_acts_at_random(tmp_path, capsys, worded):
    config = tiny_config(rounds=8)
    module, data = build(config, tmp_path)
    interrupt = _Interrupt()
    interrupt.words_interrupts = worded
    made = trainer(config, tmp_path)
    made.callbacks.append(interrupt)
    with pytest.raises(SystemExit):
        made.fit(module, data)
    said = f"go on from the last checkpoint by trainer.fit(module, data, ckpt_path='{tmp_path}"
    assert capsys.readouterr().err.count(said) == (not worded)
    with pytest.warns(UserWarning, match=r"last\.ckpt was written before the first update"):
        load(tmp_path)


def test_settings_reach_the_device_before_they_get_their_name(tmp_path, monkeypatch):
    """Under fsync; else nobody waits for the device."""
    calls = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append(_name(fd)), sync(fd))[1])
    monkeypatch.setattr(
        Path, "replace", lambda old, new: (calls.append(f"-> {Path(new).name}"), replace(old, new))
    )
    config = tiny_config(rounds=8)
    run(config, tmp_path / "plain")
    assert not [each for each in calls if each.startswith(("config", "last", "checkpoints"))]
    calls.clear()
    fsync = dataclasses.replace(config.loop, durability="fsync")
    run(dataclasses.replace(config, loop=fsync), tmp_path / "synced")
    at = calls.index("-> config.yaml")
    assert calls[at - 1].startswith("config.yaml.")
    named = calls.index("-> last.ckpt")
    assert "synced" in calls[at:named]
    assert calls[named + 1 : named + 3] == ["checkpoints", "synced"]


def _name(descriptor):
    return Path(f"/proc/self/fd/{descriptor}").readlink().name
