"""Disks that fill up at a random point: one clear line, nothing lost, and it goes on afterwards."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

import storage
from storage.errors import DiskFullError
from storage.writer import Writer
from tests.faults.jobs import DRIFT, train_words
from tests.faults.nursery import Child, Nursery, eventually
from tests.faults.oracle import Oracle, promised
from tests.storage.test_disk_full import fill
from tests.storage.zoo import Tiny, tiny_spec
from training.checkpoints.checkpoint_file import read_checkpoint


def seeds(quick: int, long: int) -> list:
    return [
        *range(quick),
        *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(quick, long)),
    ]


def leave(folder: Path, room: int) -> Path:
    """Fill the disk up to ``room`` bytes."""
    spare = folder / "spare"
    spare.write_bytes(bytes(room))
    filler = fill(folder)
    spare.unlink()
    return filler


def episode(writer: Writer, lane: int, number: int) -> object:
    tiny = Tiny(lane, number)
    writer.begin(lane, tiny.observation(0), seed=number, lane_episode=number)
    record = None
    for t in range(tiny.length):
        record = writer.step(lane, **tiny.step(t))
    return record


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_a_writer_survives_a_disk_that_fills_up_anywhere(small_disk: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = small_disk / "store"
    store = storage.create(path, tiny_spec())
    told: list[dict[str, int]] = []
    oracle = Oracle(path)
    with store.writer(lanes=2, row_budget=chance.choice((40, 2000)), publish_interval=0) as writer:
        for number in range(chance.randrange(1, 30)):
            tell(told, episode(writer, number % 2, number))
        filler = leave(small_disk, chance.choice((0, 1, 20)) * chance.randrange(1, 20_000))
        with pytest.raises(DiskFullError, match=str(small_disk)):  # noqa: PT012
            for number in range(1000, 100_000):
                tell(told, episode(writer, number % 2, number))
        oracle.check(told)
        filler.unlink()
        for lane in range(2):
            rest = writer.end(lane)
            if rest is not None and rest.length == Tiny(lane, rest.lane_episode).length:
                tell(told, rest)
            elif rest is not None:
                oracle.known[rest.segment, rest.start] = promised(path)[rest.segment, rest.start]
        for number in range(200_000, 200_010):
            tell(told, episode(writer, number % 2, number))
    oracle.check(told)


def tell(told: list[dict[str, int]], record) -> None:
    known = {name: int(getattr(record, name)) for name in ("segment", "start", "length", "lane")}
    told.append(known | {"episode": int(record.lane_episode)})


def one_error(child: Child) -> str:
    """The only error line of a command that met a full disk."""
    assert child.wait() == 2, child.said
    assert "Traceback" not in child.said
    (line,) = [line for line in child.said.splitlines() if line.startswith("sharpwave: error")]
    assert "disk full" in line, line
    return line


@pytest.mark.parametrize("seed", seeds(1, 12))
def test_a_collection_on_a_full_disk_goes_on_when_there_is_room(
    learners: Nursery, small_disk: Path, seed: int
) -> None:
    path = small_disk / "store"
    words = ["collect", DRIFT, "--lanes=2", f"--store={path}"]
    filler = leave(small_disk, random.Random(seed).randrange(800_000, 2_000_000))
    line = one_error(learners.command(*words, "--steps=1000000"))
    assert "another --seed" in line
    filler.unlink()
    oracle = Oracle(path)
    oracle.see(promised(path))
    oracle.check()
    again = learners.command(*words, "--steps=60", "--seed=1")
    assert again.wait() == 0, again.said
    oracle.check()


@pytest.mark.parametrize("seed", seeds(1, 24))
def test_a_run_on_a_full_disk_keeps_its_checkpoint_and_goes_on(
    learners: Nursery, small_disk: Path, seed: int
) -> None:
    """Checkpoints, metrics and steps compete for the last bytes; any of them may come too late."""
    run = small_disk / "runs/run"
    last, metrics = run / "checkpoints/last.ckpt", run / "metrics.csv"
    child = learners.command(*train_words(10**7, "--loop.lanes=2"), cwd=small_disk)
    eventually(lambda: metrics.exists() or not child.alive(), child.said)
    filler = leave(small_disk, random.Random(seed).choice((0, 2_000, 30_000, 300_000)))
    line = one_error(child)
    print(line)
    oracle = Oracle(run / "store", orphans=True)
    oracle.see(promised(oracle.path))
    oracle.check()
    filler.unlink()
    done = steps_of(last)
    budget = done + 96
    again = learners.command("train", "--resume=runs/run", f"--loop.steps={budget}", cwd=small_disk)
    assert again.wait() == 0, again.said
    oracle.check()
    assert steps_of(last) == budget
    check_metrics(metrics, budget)


def steps_of(last: Path) -> int:
    from training.checkpoints.checkpoint_file import AGENT_KEY

    return int(read_checkpoint(last)[AGENT_KEY]["counters"]["environment_steps"])


def check_metrics(path: Path, budget: int) -> None:
    """Whole lines, in order, none twice; evaluations have lines of their own."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    at = [(int(row["steps"]), row["updates"] == "") for row in rows]
    assert [steps for steps, _ in at] == sorted(steps for steps, _ in at)
    assert len(at) == len(set(at))
    assert at[-1][0] <= budget
    assert all(row[next(reversed(row))] is not None for row in rows), "half a line"
