"""The power goes at a random instant: what ``durability="fsync"`` acknowledged is there."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import storage
from storage.errors import CorruptStoreError
from storage.syncing import sync_path
from tests.faults.nursery import Nursery, eventually
from tests.faults.oracle import Oracle, read_told, survey
from tests.faults.power import PowerDisk, power_disk, reboot
from tests.storage.zoo import check_tiny, play, tiny_spec

STORE_LIFE = 10
"""Cuts on one store before a new one is begun."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[PowerDisk]:
    with power_disk(tmp_path) as made:
        yield made


def write_until_the_cut(
    writers: Nursery, disk: PowerDisk, store: Path, folder: Path, cut: int, **options: object
) -> None:
    """Two writers until the power goes at a random instant; they tell files of ``folder``."""
    chance = random.Random(cut)
    group = chance.choice((0, 0, 4)) if options["durability"] == "fsync" else 0
    if group:
        options["sync_episodes"] = 100  # so that it is sync() alone that makes them safe
    options |= {"row_budget": chance.choice((20, 150)), "capacity": 256, "run": f"run{cut}"}
    told = [folder / f"{store.name}.{cut}.{k}" for k in range(2)]
    children = [
        writers.start("write", store, file, 10**6 * cut + 10**5 * k, 2, options, 0.0, group)
        for k, file in enumerate(told)
    ]
    eventually(lambda: sum(len(read_told(file)) for file in told) > 1, "no two episodes came")
    time.sleep(chance.uniform(0, 0.3))
    if options["durability"] == "process":
        write_some_back(store, chance)
    disk.cut()
    time.sleep(0.01)  # the writers meet errors now; whatever they acknowledge from here on counts
    for child in children:
        assert child.kill() in (-signal.SIGKILL, 1), child.said
    disk.restore()
    reboot(store)


def write_some_back(store: Path, chance: random.Random) -> None:
    """What the kernel does within half a minute: some files reach the disk before others."""
    share = chance.random()
    for folder, _, names in sorted(os.walk(store)):  # which does not mind that folders go
        for name in sorted(names):
            if chance.random() < share:
                with suppress(OSError):  # files come and go
                    sync_path(Path(folder, name))


def acknowledged(store: Path, folder: Path) -> list[dict[str, int]]:
    return [each for file in folder.glob(f"{store.name}.*") for each in read_told(file)]


@pytest.mark.parametrize("cuts", [2, pytest.param(120, marks=pytest.mark.soak)])
def test_what_fsync_acknowledged_outlives_a_power_cut(
    writers: Nursery, disk: PowerDisk, tmp_path: Path, cuts: int
) -> None:
    episodes = 0
    for cut in range(cuts):
        print(f"cut {cut}: random.Random({cut})")
        if cut % STORE_LIFE == 0:
            shutil.rmtree(disk.folder / f"store{cut - STORE_LIFE}", ignore_errors=True)
            oracle = Oracle(disk.folder / f"store{cut}")
            storage.create(oracle.path, tiny_spec())
        write_until_the_cut(writers, disk, oracle.path, tmp_path, cut, durability="fsync")
        told = acknowledged(oracle.path, tmp_path)
        oracle.known = {}  # what nobody acknowledged may be gone, and its rows used again
        oracle.check(told, sound=False)
        with storage.open(oracle.path, mode="r+").writer(durability="fsync") as writer:
            record = play(writer, 0, 3)
        with storage.open(oracle.path) as store:
            check_tiny(store, record)
        oracle.check(told)
        episodes += len(told) if (cut + 1) % STORE_LIFE == 0 or cut + 1 == cuts else 0
    print(f"{cuts} cuts, {episodes:,} acknowledged episodes")
    assert episodes > cuts


@pytest.mark.parametrize("cuts", [1, pytest.param(60, marks=pytest.mark.soak)])
def test_what_process_durability_loses_is_named_and_never_shown(
    writers: Nursery, disk: PowerDisk, tmp_path: Path, cuts: int
) -> None:
    told = lost = named = refused = 0
    for cut in range(cuts):
        print(f"cut {cut}: random.Random({cut})")
        path = disk.folder / f"store{cut}"
        storage.create(path, tiny_spec())
        os.sync()  # the store itself is from long ago
        write_until_the_cut(writers, disk, path, tmp_path, cut, durability="process")
        named += sum(max(1, len(each.ordinals)) for each in storage.verify(path).errors)
        try:
            before = survey(path)  # fails where a reader is given other bytes than were committed
        except CorruptStoreError:
            refused, before = refused + 1, {}
        storage.repair(path)
        assert storage.verify(path).sound
        shown = survey(path)
        assert shown.keys() >= before.keys()
        known = {(each["segment"], each["start"]) for each in acknowledged(path, tmp_path)}
        told, lost = told + len(known), lost + len(known - shown.keys())
        with storage.open(path, mode="r+").writer() as writer:
            play(writer, 0, 3)
        shutil.rmtree(path)
    print(
        f"{cuts} cuts: of {told:,} episodes {lost:,} were lost; verify named {named:,} episodes or "
        f"files; {refused} stores opened after repair only"
    )
    assert lost > 0
