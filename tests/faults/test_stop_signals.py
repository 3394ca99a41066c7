"""Ctrl-C and SIGTERM, also twice within 50 ms: nothing is lost, no noise, and it goes on."""

from __future__ import annotations

import random
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest

import storage
from tests.faults.jobs import DRIFT, train_words
from tests.faults.nursery import Child, Nursery, eventually
from tests.faults.oracle import Oracle, promised

INT, TERM = signal.SIGINT, signal.SIGTERM
STATUS = {INT: {130}, TERM: {143, -TERM}}
"""A shell shows both of SIGTERM's as 143."""
STOPS = [(INT,), (INT, INT), (TERM,), (TERM, TERM), (INT, TERM)]


def stop(child: Child, signals: tuple[int, ...], wait: float) -> None:
    time.sleep(wait)
    for number in signals[:1]:
        child.send(number)
    for _, number in pairwise(signals):
        time.sleep(0.05)
        if child.alive():
            child.send(number)
    code = child.wait()
    assert code in set().union(*(STATUS[number] for number in signals)), child.said
    noise = [line for line in child.said.splitlines() if line.startswith(("Traceback", "  File "))]
    assert not noise, child.said
    lines = [line for line in child.said.splitlines() if line.startswith("sharpwave: interrupted")]
    # SIGTERM may come when the line is there, and end the process as it ends any other.
    assert len(lines) == 1 if code == 130 else len(lines) <= 1, child.said


def cases(quick: list, rounds: int) -> list:
    """Each kind of stop ``rounds`` times in the long form."""
    long = [(stops, seed) for stops in STOPS for seed in range(rounds)]
    return [*quick, *(pytest.param(*case, marks=pytest.mark.soak) for case in long)]


@pytest.mark.parametrize(("signals", "seed"), cases([((INT, INT), 0)], 4))
def test_a_stopped_collection_keeps_every_episode(
    learners: Nursery, tmp_path: Path, signals: tuple[int, ...], seed: int
) -> None:
    store = tmp_path / "store"
    words = ["collect", DRIFT, "--lanes=2", f"--store={store}"]
    child = learners.command(*words, "--steps=10000000")
    eventually(lambda: written(store, 5) or not child.alive(), child.said)
    oracle = Oracle(store)
    oracle.see(promised(store))
    stop(child, signals, random.Random(seed).uniform(0, 0.2))
    oracle.check()
    again = learners.command(*words, "--steps=50", "--seed=1")
    assert again.wait() == 0, again.said
    oracle.check()


def written(store: Path, episodes: int) -> bool:
    if not (store / "steps.zarr/zarr.json").exists():
        return False
    with storage.open(store) as opened:
        return opened.n_episodes >= episodes


@pytest.mark.parametrize(("signals", "seed"), cases([((INT, INT), 0)], 4))
def test_a_stopped_run_keeps_every_episode_and_goes_on(
    learners: Nursery, tmp_path: Path, signals: tuple[int, ...], seed: int
) -> None:
    words = train_words(10**7, "--loop.lanes=2")
    child = learners.command(*words, cwd=tmp_path)
    run = tmp_path / "runs/run"
    metrics, last = run / "metrics.csv", run / "checkpoints/last.ckpt"
    eventually(lambda: metrics.exists() or not child.alive(), child.said)
    oracle = Oracle(run / "store", orphans=True)
    oracle.see(promised(oracle.path))
    stop(child, signals, random.Random(seed).uniform(0, 0.3))
    oracle.check()
    steps = resumed_steps(learners, tmp_path, last)
    oracle.check()
    with storage.open(oracle.path) as store:
        assert store.n_steps == steps


def resumed_steps(learners: Nursery, folder: Path, last: Path) -> int:
    """Resume for some 100 steps more; the budget that it was given."""
    from training.checkpoints.checkpoint_file import AGENT_KEY, read_checkpoint

    done = int(read_checkpoint(last)[AGENT_KEY]["counters"]["environment_steps"])
    budget = done + 112
    again = learners.command("train", "--resume=runs/run", f"--loop.steps={budget}", cwd=folder)
    assert again.wait() == 0, again.said
    return budget
