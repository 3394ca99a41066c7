"""The power goes at a random instant: what ``durability="fsync"`` acknowledged is there."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import storage
from tests.faults.nursery import Child, Nursery, eventually
from tests.faults.oracle import Oracle, read_told
from tests.faults.power import PowerDisk, power_disk, reboot
from tests.storage.zoo import check_tiny, play, tiny_spec

STORE_LIFE = 10
"""Cuts on one store before a new one is begun."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[PowerDisk]:
    with power_disk(tmp_path) as made:
        yield made


def start(writers: Nursery, store: Path, told: Path, base: int, options: dict) -> Child:
    return writers.start("write", store, told, base, 2, options)


def cut_and_restore(disk: PowerDisk, children: list[Child], store: Path) -> None:
    disk.cut()
    time.sleep(0.01)  # the writers meet errors now; whatever they acknowledge from here on counts
    for child in children:
        assert child.kill() in (-signal.SIGKILL, 1), child.said
    disk.restore()
    reboot(store)


@pytest.mark.parametrize("cuts", [3, pytest.param(100, marks=pytest.mark.soak)])
def test_what_fsync_acknowledged_outlives_a_power_cut(
    writers: Nursery, disk: PowerDisk, tmp_path: Path, cuts: int
) -> None:
    episodes = 0
    for cut in range(cuts):
        print(f"cut {cut}: random.Random({cut})")
        chance = random.Random(cut)
        if cut % STORE_LIFE == 0:
            oracle = Oracle(disk.folder / f"store{cut}")
            storage.create(oracle.path, tiny_spec())
            told: list[Path] = []
        options = {
            "durability": "fsync",
            "row_budget": chance.choice((20, 150)),
            "run": f"run{cut}",
        }
        told += [tmp_path / f"told{cut}.{k}" for k in range(2)]
        children = [
            start(writers, oracle.path, file, 100_000 * len(told) + k, options)
            for k, file in enumerate(told[-2:])
        ]
        eventually(lambda files=told[-2:]: any(map(read_told, files)), "no episode came")
        time.sleep(chance.uniform(0, 0.3))
        cut_and_restore(disk, children, oracle.path)
        acknowledged = [each for file in told for each in read_told(file)]
        oracle.known = {}  # what nobody acknowledged may be gone, and bytes may be given anew
        oracle.check(acknowledged, sound=False)
        with storage.open(oracle.path, mode="r+").writer(durability="fsync") as writer:
            record = play(writer, 0, 3)
        with storage.open(oracle.path) as store:
            check_tiny(store, record)
        oracle.check(acknowledged)
        episodes += sum(len(read_told(file)) for file in told[-2:])
    print(f"{cuts} cuts, {episodes:,} acknowledged episodes")
    assert episodes > cuts
