"""`collect` is killed or runs out of disk; what was committed stays."""

from __future__ import annotations

import multiprocessing
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import storage
from pipeline.collect import main
from storage import Ending
from storage.checksum import crc32c


def check_every_episode(path: Path) -> tuple[int, int]:
    """Recomputes the checksum of every column of every episode; steps and episodes there are."""
    with storage.open(path) as store:
        for info in store.segments:
            log, segment = store.log(info.id), store.segment(info.id)
            for record, sums in zip(log.records, log.column_checksums, strict=True):
                rows = slice(record["start"], record["start"] + record["length"] + 1)
                for column, known in zip(store.schema.columns, sums, strict=True):
                    assert crc32c(np.ascontiguousarray(segment.array(column.name)[rows])) == known
        return store.n_steps, store.n_episodes


def collect_until_killed(path: Path, seed: int, wait: float) -> int:
    """Runs `collect` in a process, kills it `wait` s after its first episode; episodes seen."""
    words = ["InvertedPendulum-v5", "--steps=10000000", f"--store={path}", f"--seed={seed}"]
    child = multiprocessing.get_context("fork").Process(target=main, args=(words,))
    before = check_every_episode(path)[1] if path.exists() else 0
    child.start()
    seen = before
    deadline = time.monotonic() + 60
    while seen == before and time.monotonic() < deadline:
        if (path / "steps.zarr").exists():
            with storage.open(path) as store:
                seen = store.n_episodes
    time.sleep(wait)
    with storage.open(path) as store:
        seen = store.n_episodes
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    return seen


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.soak)])
def test_killed_at_random_instants(kills: int, tmp_path: Path) -> None:
    # Imports and first calls happen here, so that the forked children act at once.
    main(["InvertedPendulum-v5", "--steps=50", f"--store={tmp_path / 'first'}"])
    path = tmp_path / "store"
    waits = np.random.default_rng(0).uniform(0, 0.3, kills)
    for seed, wait in enumerate(waits):
        seen = collect_until_killed(path, seed, float(wait))
        assert check_every_episode(path)[1] >= seen
    steps, episodes = check_every_episode(path)
    main(["InvertedPendulum-v5", "--steps=5", f"--store={path}", f"--seed={kills}"])
    assert check_every_episode(path)[0] >= steps + 5
    with storage.open(path) as store:
        endings = np.concatenate([store.records(info.id)["ending"] for info in store.segments])
        assert len(endings) > episodes
        salvaged = np.count_nonzero(endings == Ending.SALVAGED)
        assert salvaged <= kills
        # Few kills may all fall between two episodes.
        assert salvaged > 0 or kills < 50


def test_a_full_disk_is_one_error(small_disk: Path, sharpwave) -> None:
    path = small_disk / "store"
    done = sharpwave("collect", "HalfCheetah-v5", "--steps=100000", f"--store={path}", code=2)
    warning, error = done.stderr.splitlines()
    assert warning == "sharpwave: warning: the disk will fill up before the end"
    assert error.startswith("sharpwave: error: disk full: ")
    assert error.count("disk full") == 1
    assert f"{path} (" in error
    assert error.endswith("then collect the rest by the same command with another --seed.")
    assert check_every_episode(path)[0] >= 1000
