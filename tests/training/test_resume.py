"""Resumed runs equal straight ones, bit for bit."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
import time
from pathlib import Path

import lightning
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import storage
from storage.errors import CheckpointError
from tests.training.tiny import (
    ROUND,
    checkpoint_content,
    differences,
    longer,
    rows,
    run,
    tiny_config,
)
from training.assembly import build, trainer
from training.checkpoints.checkpoint import last_checkpoint
from training.checkpoints.checkpoint_file import read_checkpoint
from training.config_file import save_config
from training.environments.replayability import NotReplayableWarning
from training.loading import load


def _assert_equal_runs(straight: Path, resumed: Path) -> None:
    assert differences(checkpoint_content(straight), checkpoint_content(resumed)) == []
    assert rows(straight) == rows(resumed)
    hashes = [storage.content_hash(folder / "store") for folder in (straight, resumed)]
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize(
    ("lanes", "kind", "stop", "scheme"),
    [
        (1, "serial", 12, "uniform"),
        (2, "serial", 12, "uniform"),
        (2, "sync", 12, "uniform"),
        (1, "serial", 4, "uniform"),
        (1, "serial", 2, "uniform"),
        (2, "sync", 1, "uniform"),
        (2, "serial", 12, "per"),
        (2, "sync", 12, "pser"),
        (1, "serial", 2, "pser"),
    ],
)
def test_stopped_and_resumed_equals_straight(tmp_path, lanes, kind, stop, scheme):
    """Twenty rounds and a partial last one straight, against stop, resume and the rest.

    Stopped before the first checkpoint that is due, it goes on from round 0.
    """
    config = tiny_config(
        steps=20 * ROUND + 2, lanes=lanes, lane_kind=kind, checkpoint_rounds=4, scheme=scheme
    )
    run(config, tmp_path / "straight")
    if stop <= 2:
        _interrupted(config, tmp_path / "resumed", after_rounds=stop, resume=False)
        kept = checkpoint_content(tmp_path / "resumed")
        assert (kept["global_step"], kept["sharpwave"]["counters"]["environment_steps"]) == (0, 0)
    else:
        run(config, tmp_path / "resumed", max_steps=stop)
    run(config, tmp_path / "resumed", resume=True)
    _assert_equal_runs(tmp_path / "straight", tmp_path / "resumed")


def test_a_finished_run_goes_on_as_if_it_had_been_asked_for_more(tmp_path):
    """It had ended within a round; the rows of its own end are all that it has besides."""
    config = tiny_config(rounds=30, checkpoint_rounds=4, evaluate_every=5 * ROUND)
    run(config, tmp_path / "straight")
    loop = dataclasses.replace(config.loop, steps=12 * ROUND + 5)
    short = dataclasses.replace(config, loop=loop)
    run(short, tmp_path / "extended")
    run(config, tmp_path / "extended", resume=True)
    straight, extended = (
        checkpoint_content(tmp_path / "straight"),
        checkpoint_content(tmp_path / "extended"),
    )
    assert (straight.pop("global_step"), extended.pop("global_step")) == (30, 31)
    assert differences(straight, extended) == []
    found = [row for row in rows(tmp_path / "extended") if row["environment_steps"] != "197"]
    assert found == rows(tmp_path / "straight")
    evaluated = [int(row["environment_steps"]) for row in found if row["evaluation_return"]]
    assert evaluated == [each * ROUND for each in (10, 15, 20, 25, 30)]


class _StopError(Exception):
    pass


def _interrupted(config, folder: Path, *, after_rounds: int, resume: bool) -> None:
    """Runs and dies in the middle of a round, past the last checkpoint."""
    module, data = build(config, folder)
    learn, calls = module.learn, [0]

    def dying(view, steps):
        calls[0] += 1
        if calls[0] == after_rounds * ROUND + 7:
            raise _StopError
        learn(view, steps)

    module.learn = dying
    checkpoint = last_checkpoint(folder) if resume else None
    with pytest.raises(_StopError):
        trainer(config, folder).fit(module, data, ckpt_path=checkpoint, weights_only=True)


@pytest.mark.parametrize("scheme", ["uniform", "per", "pser"])
def test_resuming_twice_after_dying_in_a_round_is_as_good_as_never_stopping(tmp_path, scheme):
    """Steps after the checkpoint leave priorities in rows that others then take."""
    config = tiny_config(rounds=20, lanes=2, checkpoint_rounds=4, scheme=scheme)
    run(config, tmp_path / "straight")
    folder = tmp_path / "resumed"
    _interrupted(config, folder, after_rounds=10, resume=False)
    _interrupted(config, folder, after_rounds=6, resume=True)
    run(config, folder, resume=True)
    _assert_equal_runs(tmp_path / "straight", folder)
    assert list((folder / "store" / "orphans").iterdir())


def _bytes(store: Path) -> dict[str, bytes]:
    """Every file of a store but the locks, which say who held them last, and times of renamed ones.

    Records that are written anew hold the times of their writing, and so do tables made from them.
    """
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.parent.name not in ("locks", "log", "episodes")
    }


def test_resuming_three_times_without_new_steps_changes_nothing(tmp_path):
    """Neither steps nor bytes; the episode that each end cuts is no orphan of the next."""
    config = tiny_config(rounds=12, checkpoint_rounds=4, lanes=2, scheme="pser")
    run(config, tmp_path)
    store = tmp_path / "store"
    before = storage.content_hash(store), rows(tmp_path), _bytes(store)
    sizes = {path: path.stat().st_size for path in store.rglob("*") if path.is_file()}
    for _ in range(3):
        run(config, tmp_path, resume=True)
        assert (storage.content_hash(store), rows(tmp_path)) == before[:2]
        assert _bytes(store) == before[2]
        assert not list((store / "orphans").iterdir())
    after = {path: path.stat().st_size for path in store.rglob("*") if path.is_file()}
    assert sizes == after


def test_a_stop_and_a_resume_at_every_checkpoint_leave_no_orphans(tmp_path):
    config = tiny_config(rounds=12, checkpoint_rounds=4, lanes=2)
    run(config, tmp_path / "straight")
    folder = tmp_path / "resumed"
    for stop in range(1, 12):
        run(config, folder, resume=stop > 1, max_steps=stop)
        assert not list((folder / "store/orphans").iterdir())
    run(config, folder, resume=True)
    _assert_equal_runs(tmp_path / "straight", folder)


def test_a_fresh_process_resumes_bit_exactly(tmp_path):
    config = tiny_config(rounds=14, checkpoint_rounds=4, environment="Pendulum-v1")
    run(config, tmp_path / "straight")
    run(config, tmp_path / "resumed", max_steps=9)
    script = (
        "from pathlib import Path\n"
        "from tests.training.tiny import run, tiny_config\n"
        "config = tiny_config(rounds=14, checkpoint_rounds=4, environment='Pendulum-v1')\n"
        f"run(config, Path({str(tmp_path / 'resumed')!r}), resume=True)\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True)
    _assert_equal_runs(tmp_path / "straight", tmp_path / "resumed")


def test_killed_twice_and_resumed_equals_straight(tmp_path):
    """kill -9 at whatever instant, in a process of its own, before and after a resume."""
    config = tiny_config(rounds=80, lanes=2, checkpoint_rounds=4)
    run(config, tmp_path / "straight")
    folder = tmp_path / "killed"
    for resume in (False, True):
        before = _saved(folder)
        starts = not resume  # the checkpoint of round 0 comes first
        child = _start(config, folder, resume=resume)
        try:
            while (_saved(folder) == before or starts) and child.poll() is None:
                if _saved(folder) != before:
                    before, starts = _saved(folder), False
                time.sleep(0.01)
        finally:
            child.kill()
            child.wait()
    run(config, folder, resume=True)
    _assert_equal_runs(tmp_path / "straight", folder)


def _saved(folder: Path) -> int:
    path = folder / "checkpoints" / "last.ckpt"
    return path.stat().st_mtime_ns if path.exists() else 0


def _start(config, folder: Path, *, resume: bool) -> subprocess.Popen[bytes]:
    script = (
        "import sys; from pathlib import Path\n"
        "from tests.training.tiny import run\n"
        "from training import load_config\n"
        "run(load_config(sys.argv[1]), Path(sys.argv[2]), resume=sys.argv[3] == 'True')\n"
    )
    settings = folder.with_suffix(".yaml")
    save_config(config, settings)
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", script, str(settings), str(folder), str(resume)]
    return subprocess.Popen(words, cwd=root)


def test_the_next_batch_and_the_overlay_are_restored(tmp_path):
    config = tiny_config(rounds=12, checkpoint_rounds=4)
    run(config, tmp_path)
    shutil.copytree(tmp_path, tmp_path.with_name("copy"))
    batches = []
    for folder in (tmp_path, tmp_path.with_name("copy")):
        kept = read_checkpoint(last_checkpoint(folder))["OnlineExperience"]
        from training.checkpoints.plain_state import as_arrays

        with storage.open(folder / "store", mode="r+") as store:
            view = store.replay(window=config.replay.window, seed=config.seed)
            view.load_state_dict(as_arrays(kept["view"]))
            batch = view.sample(16).copy()
            batches.append((batch.segment, batch.row, batch.value_target, view.n_far, view.draws))
            view.close()
    for left, right in zip(*batches, strict=True):
        assert np.array_equal(left, right)
    assert batches[0][4] > 50


def test_an_environment_that_cannot_be_replayed_is_named(tmp_path):
    config = tiny_config(rounds=9, checkpoint_rounds=4, environment="tests.training.zoo.Forgetful")
    run(config, tmp_path)
    with pytest.warns(NotReplayableWarning, match="lane 0 from step 1"):
        run(longer(config, 12), tmp_path, resume=True)


def test_a_directory_without_checkpoint_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"last\.ckpt"):
        last_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=str(tmp_path)):
        load(tmp_path)
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load(tmp_path / "nothing.ckpt")


def test_a_damaged_or_foreign_file_is_refused(tmp_path):
    run(tiny_config(rounds=8), tmp_path)
    good = (tmp_path / "checkpoints" / "last.ckpt").read_bytes()
    bad = tmp_path / "bad.ckpt"
    bad.write_bytes(good[: len(good) // 2])
    with pytest.raises(CheckpointError, match="damaged"):
        load(bad)
    torch.save({"state_dict": {}}, bad)
    with pytest.raises(CheckpointError, match="no Sharpwave agent"):
        load(bad)
    torch.save({"code": Path}, bad)
    with pytest.raises(CheckpointError):
        load(bad)


def test_a_checkpoint_for_other_spaces_or_another_store_is_refused(tmp_path):
    config = tiny_config(rounds=8)
    run(config, tmp_path / "a")
    checkpoint = last_checkpoint(tmp_path / "a")
    other = tiny_config(rounds=10, environment="Pendulum-v1")
    module, data = build(other, tmp_path / "b")
    with pytest.raises(CheckpointError, match="observation_space"):
        trainer(other, tmp_path / "b").fit(module, data, ckpt_path=checkpoint, weights_only=True)
    run(config, tmp_path / "c")
    module, data = build(longer(config, 12), tmp_path / "c")
    with pytest.raises(CheckpointError, match="belongs to the store"):
        trainer(longer(config, 12), tmp_path / "c").fit(
            module, data, ckpt_path=checkpoint, weights_only=True
        )


def test_a_changed_ratio_owes_no_updates_for_the_past(tmp_path):
    """The burst of updates after resuming: the debt is bounded."""
    replace = dataclasses.replace
    config = tiny_config(rounds=12)
    before = run(config, tmp_path).counters.updates
    later = longer(config, 14)
    later = replace(later, loop=replace(later.loop, updates_per_step=2.0))
    module = run(later, tmp_path, resume=True)
    assert module.counters.updates == before + 2 * 2 * ROUND


def test_a_resumed_run_owes_no_burst_of_updates(tmp_path):
    """Also one whose replay memory was empty: each step owes what the ratio says, from there on."""
    config = tiny_config(rounds=16)
    run(config, tmp_path, max_steps=4)
    kept = read_checkpoint(last_checkpoint(tmp_path))["sharpwave"]["counters"]
    assert (kept["environment_steps"], kept["updates"]) == (4 * ROUND, 0)
    module, data = build(config, tmp_path)
    learn, counts = module.learn, []

    def watched(view, steps):
        learn(view, steps)
        counts.append((steps, module.counters.updates))

    module.learn = watched
    trainer(config, tmp_path).fit(
        module, data, ckpt_path=last_checkpoint(tmp_path), weights_only=True
    )
    started = module.counters.origin_steps
    assert started >= config.loop.warmup
    assert [updates for steps, updates in counts if steps <= started] == [0] * (started - 4 * ROUND)
    after = [updates for steps, updates in counts if steps > started]
    assert after == list(range(1, len(after) + 1))


def test_every_checkpoint_of_a_plain_trainer_can_be_resumed(tmp_path):
    """Lightning's own callback, at every 50th of 200 rounds, and Lightning's own trainer."""
    config = tiny_config(steps=200 * 4, window=100)
    loop = dataclasses.replace(config.loop, round_steps=4, warmup=50)
    config = dataclasses.replace(config, loop=loop)

    def plain(folder: Path, checkpoint: Path | None = None) -> dict:
        module, data = build(config, folder)
        saver = ModelCheckpoint(folder / "kept", "{step}", every_n_train_steps=50, save_top_k=-1)
        options = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        made = lightning.Trainer(
            max_epochs=-1, accelerator="cpu", devices=1, callbacks=[saver], **options
        )
        made.fit(module, data, ckpt_path=checkpoint, weights_only=True)
        return read_checkpoint(folder / "kept/step=200.ckpt")

    straight = plain(tmp_path / "straight")
    names = sorted(path.name for path in (tmp_path / "straight/kept").iterdir())
    assert names == ["step=100.ckpt", "step=150.ckpt", "step=200.ckpt", "step=50.ckpt"]
    for name in names:
        folder = tmp_path / name
        shutil.copytree(tmp_path / "straight", folder)
        again = plain(folder, folder / "kept" / name)
        for part in ("state_dict", "optimizer_states", "global_step"):
            assert differences(straight[part], again[part]) == []
        views = [each["OnlineExperience"]["view"] for each in (straight, again)]
        assert differences(*views) == []


def test_a_checkpoint_does_not_grow_with_the_store(tmp_path):
    """It costs the window: the same files are touched, and about as many bytes written."""
    config = tiny_config(rounds=8, window=64)
    sizes = {}
    for rounds in (8, 160):
        folder = tmp_path / str(rounds)
        run(longer(config, rounds), folder)
        sizes[rounds] = (folder / "checkpoints/last.ckpt").stat().st_size
        with storage.open(folder / "store") as store:
            assert store.n_steps == rounds * ROUND
    assert sizes[160] < 1.2 * sizes[8]
