"""The power goes while ``sharpwave train`` works under ``loop.durability: fsync``: it resumes."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

import storage
from tests.faults.jobs import train_words
from tests.faults.nursery import Nursery, eventually
from tests.faults.power import PowerDisk, power_disk, reboot
from tests.faults.test_kill_commands import RUN_STEPS, check_same_run, was_complete

WORDS = train_words(RUN_STEPS, "--loop.lanes=2", "--loop.durability=fsync")


@pytest.mark.parametrize("cuts", [pytest.param(24, marks=pytest.mark.soak)])
def test_a_run_resumes_after_power_cuts_and_ends_as_if_there_had_been_none(
    learners: Nursery, tmp_path: Path, cuts: int
) -> None:
    expected = tmp_path / "undisturbed"
    expected.mkdir()
    child = learners.command(*WORDS, cwd=expected)
    assert child.wait() == 0, child.said
    with power_disk(tmp_path) as disk:
        cut = runs = 0
        while cut < cuts:
            folder = disk.folder / f"run{runs}"
            folder.mkdir()
            done = False
            while not done:
                print(f"run {runs}, cut {cut}: random.Random({cut})")
                wait = random.Random(cut).uniform(0, 1.0) if cut < cuts else None
                done = attempt(learners, disk, folder, wait)
                cut += not done
            found = storage.verify(folder / "runs/run/store")
            assert found.sound, [(e.file, e.kind, e.rows, e.ordinals) for e in found.errors]
            check_same_run(expected / "runs/run", folder / "runs/run")
            runs += 1
    print(f"{cut} cuts in {runs} runs")


def attempt(learners: Nursery, disk: PowerDisk, folder: Path, wait: float | None) -> bool:
    """Begin the run or go on; cut the power ``wait`` s after a checkpoint. Whether it ended."""
    last = folder / "runs/run/checkpoints/last.ckpt"
    resumes = last.exists()
    before = last.stat().st_mtime_ns if resumes else 0
    child = learners.command(*(["train", "--resume=runs/run"] if resumes else WORDS), cwd=folder)
    if wait is None:
        code = child.wait()
        assert code == 0 or was_complete(child, code), child.said
        return True
    saved = lambda: last.exists() and last.stat().st_mtime_ns != before  # noqa: E731
    eventually(lambda: saved() or not child.alive(), child.said)
    time.sleep(wait)
    if not child.alive():
        code = child.wait()
        assert code == 0 or was_complete(child, code), child.said
        return True
    disk.cut()
    time.sleep(0.01)
    ended = child.kill()  # the cut may have ended it with an error by now
    assert ended in (0, 1, 2, -signal.SIGKILL), child.said
    disk.restore()
    reboot(folder / "runs/run/store")
    return ended == 0
