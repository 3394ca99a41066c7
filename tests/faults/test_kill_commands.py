"""kill -9 of ``sharpwave collect`` and ``sharpwave train``, again and again on the same store."""

from __future__ import annotations

import csv
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import storage
from storage.checksum import crc32c
from storage.layout import Ending
from storage.salvage import salvage
from tests.faults.jobs import DRIFT, train_words
from tests.faults.nursery import Child, Nursery, eventually
from tests.faults.oracle import Oracle, promised
from training.checkpoints.checkpoint_file import read_checkpoint

STORE_LIFE = 20
"""Kills on one store before a new one is begun."""
RUN_STEPS = 1200


def look_then_kill(child: Child, oracle: Oracle, chance: random.Random) -> bool:
    """Note what a reader sees, kill a little later, check; whether the child had ended itself."""
    if (oracle.path / "steps.zarr" / "zarr.json").exists():
        oracle.see(promised(oracle.path))
    time.sleep(chance.uniform(0, 0.02))
    code = child.kill()
    ended = code == 0 or was_complete(child, code)
    assert ended or code == -signal.SIGKILL, f"exit {code}: {child.said}"
    if (oracle.path / "steps.zarr" / "zarr.json").exists():
        oracle.check()
    return ended


def was_complete(child: Child, code: int) -> bool:
    """Whether a run refused to go on because the kill before had come behind its last work."""
    return code == 2 and f"has taken its {RUN_STEPS:,} steps" in child.said


@pytest.mark.parametrize("kills", [4, pytest.param(120, marks=pytest.mark.soak)])
def test_a_killed_collection_loses_nothing_that_was_seen(
    learners: Nursery, tmp_path: Path, kills: int
) -> None:
    episodes = 0
    for kill in range(kills):
        print(f"kill {kill}: random.Random({kill})")
        if kill % STORE_LIFE == 0:
            oracle = Oracle(tmp_path / f"store{kill}")
        episodes += collect_then_kill(learners, oracle, kill)
    words = ["collect", DRIFT, "--steps=20", f"--seed={kills}", f"--store={oracle.path}"]
    child = learners.command(*words)
    assert child.wait() == 0, child.said
    oracle.check()
    print(f"{kills} kills, {episodes:,} episodes")
    assert episodes > kills


def collect_then_kill(learners: Nursery, oracle: Oracle, kill: int) -> int:
    """One collection and its end; episodes that it added."""
    chance = random.Random(kill)
    lanes, before = chance.choice((1, 3)), len(oracle.known)
    words = ["collect", DRIFT, "--steps=10000000", f"--seed={kill}", f"--lanes={lanes}"]
    child = learners.command(*words, f"--store={oracle.path}")
    if chance.random() < 0.7:
        eventually(lambda: grown(oracle.path, before) or not child.alive(), child.said)
    time.sleep(chance.uniform(0, 0.2))
    assert not look_then_kill(child, oracle, chance)
    return len(oracle.known) - before


def grown(path: Path, before: int) -> bool:
    if not (path / "steps.zarr" / "zarr.json").exists():
        return False
    with storage.open(path) as store:
        return store.n_episodes > before


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("sync", 3),
        pytest.param("serial", 80, marks=pytest.mark.soak),
        pytest.param("sync", 80, marks=pytest.mark.soak),
    ],
)
def test_a_killed_and_resumed_run_is_the_run_that_was_never_killed(
    learners: Nursery, tmp_path: Path, kind: str, kills: int
) -> None:
    """ray-project/ray#8151: weights come back, the replay buffer silently does not."""
    words = train_words(RUN_STEPS, "--loop.lanes=2", f"--loop.lane_kind={kind}")
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    child = learners.command(*words, cwd=undisturbed)
    assert child.wait() == 0, child.said
    kill = finished = aside = 0
    while not finished or kill < kills:
        folder = tmp_path / f"killed{finished}"
        folder.mkdir()
        oracle = Oracle(folder / "runs/run/store", orphans=True)
        done = False
        while not done:
            print(f"run {finished}, kill {kill}: random.Random({kill})")
            chance = random.Random(kill) if kill < kills else None
            done = attempt(learners, folder, words, oracle, chance)
            kill += not done
        check_same_run(undisturbed / "runs/run", folder / "runs/run")
        shutil.rmtree(folder)
        finished += 1
        aside += len(oracle.aside)
    print(f"{kill} kills in {finished} runs, {aside:,} episodes set aside by resuming, all there")
    assert aside > 0 or kills < 10  # a few kills may all find a run right behind its checkpoint


def attempt(
    learners: Nursery, folder: Path, words: list[str], oracle: Oracle, chance: random.Random | None
) -> bool:
    """Start the run, or go on with it; whether it came to its end before the kill."""
    last = folder / "runs/run/checkpoints/last.ckpt"
    resumes = last.exists()
    began = last.stat().st_mtime_ns if resumes else 0
    child = learners.command(*(["train", "--resume=runs/run"] if resumes else words), cwd=folder)
    if chance is None:
        code = child.wait()
        assert code == 0 or was_complete(child, code), child.said
        oracle.check()
        return True
    if chance.random() < 0.8:  # else while it starts, or while a rewind is at work
        saved = lambda: last.exists() and last.stat().st_mtime_ns != began  # noqa: E731
        eventually(lambda: saved() or not child.alive(), child.said)
    time.sleep(chance.uniform(0, 0.25))
    done = look_then_kill(child, oracle, chance)
    if resumes or last.exists():
        read_checkpoint(last)
    return done


def check_same_run(expected: Path, path: Path) -> None:
    """Steps, metrics and what was learnt are those of the run that nobody disturbed.

    A run that is killed behind its last checkpoint has its open episodes salvaged, not cut.
    """
    assert metrics(path) == metrics(expected)
    with storage.open(path / "store", mode="r+") as store:
        salvaged = salvage(store).episodes
    assert played(path / "store") == played(expected / "store")
    same = storage.content_hash(path / "store") == storage.content_hash(expected / "store")
    assert same or salvaged
    ours = read_checkpoint(path / "checkpoints/last.ckpt")
    theirs = read_checkpoint(expected / "checkpoints/last.ckpt")
    assert {name: value.tolist() for name, value in ours["state_dict"].items()} == {
        name: value.tolist() for name, value in theirs["state_dict"].items()
    }


def played(path: Path) -> list[tuple[int, ...]]:
    """Lane, number, seed, length, ending and checksum of the actions of every episode."""
    with storage.open(path) as store:
        return [
            (
                *(each.record.lane, each.record.lane_episode, each.record.seed or 0),
                *(
                    each.record.length,
                    min(each.record.ending, Ending.SALVAGED),  # cut or salvaged: no other end
                    crc32c(np.ascontiguousarray(each.action)),
                ),
            )
            for each in store.iterate_episodes()
        ]


def metrics(path: Path) -> list[dict[str, str]]:
    with (path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [{key: row[key] for key in row if key != "wall_time"} for row in rows]
