"""kill -9 at random instants, over and over on the same store: nothing acknowledged is lost."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

import storage
from storage.layout import Ending
from tests.faults.nursery import Child, Nursery, eventually
from tests.faults.oracle import Oracle, read_told
from tests.storage.zoo import check_tiny, play, tiny_spec

STORE_LIFE = 25
"""Kills on one store before a new one is begun, so that checking it stays cheap."""
LANES = 3
PAUSE = 0.02
"""Seconds an episode of writers that live on while the store is checked, lest it outgrow that."""


def wait(chance: random.Random, told: Path) -> None:
    """Until a random instant of the start, salvage included, or of a steady writer's life."""
    if chance.random() < 0.3:
        time.sleep(chance.uniform(0, 0.05))
        return
    before = told.stat().st_size if told.exists() else 0
    eventually(lambda: told.exists() and told.stat().st_size > before + 64, "no episode came")
    time.sleep(chance.uniform(0, 0.2))


def options(chance: random.Random) -> dict:
    """Tiny segments and eager publishing make rare moments common."""
    return {
        "row_budget": chance.choice((20, 150, 1024)),
        "publish_interval": chance.choice((0, 0.2, 1.0)),
        "run": f"run{chance.randrange(10**9)}",
    }


def start(
    writers: Nursery, path: Path, told: Path, base: int, chance: random.Random, pause: float = 0.0
) -> Child:
    return writers.start("write", path, told, base, LANES, options(chance), pause)


def finish(oracle: Oracle, told: list) -> None:
    """A writer after the last kill salvages what is open, and goes on; so do all readers."""
    with storage.open(oracle.path, mode="r+").writer() as writer:
        record = play(writer, 0, 3)
    oracle.check(told)
    with storage.open(oracle.path) as store:
        check_tiny(store, record)
        assert Ending.SALVAGED in {each.record.ending for each in store.iterate_episodes()}


@pytest.mark.parametrize("kills", [8, pytest.param(250, marks=pytest.mark.soak)])
def test_a_killed_writer_loses_nothing_it_acknowledged(
    writers: Nursery, tmp_path: Path, kills: int
) -> None:
    """zarr-python: a crash inside a shard leaves it unreadable."""
    episodes = salvaged = 0
    for life, seed in enumerate(range(0, kills, STORE_LIFE)):
        path, told = tmp_path / f"store{life}", tmp_path / f"told{life}"
        storage.create(path, tiny_spec())
        oracle = Oracle(path)
        for kill in range(seed, min(seed + STORE_LIFE, kills)):
            print(f"kill {kill}: random.Random({kill})")  # pytest shows it when the test fails
            chance = random.Random(kill)
            child = start(writers, path, told, 100_000 * kill, chance)
            wait(chance, told)
            assert child.kill() == -signal.SIGKILL, child.said
            oracle.check(read_told(told))
        finish(oracle, read_told(told))
        episodes, salvaged = episodes + len(oracle.known), salvaged + oracle.salvaged
    print(f"{kills} kills, {episodes:,} episodes, {salvaged} of them salvaged")
    assert episodes > kills
    assert salvaged > kills // 3


@pytest.mark.parametrize("rounds", [4, pytest.param(100, marks=pytest.mark.soak)])
def test_writers_that_outlive_a_killed_one_go_on(
    writers: Nursery, tmp_path: Path, rounds: int
) -> None:
    """Three writers share a store; one or two are killed, new ones come, and the rest lives on."""
    path = tmp_path / "store"
    told: list[Path] = []
    live: list[Child] = []
    for turn in range(rounds):
        print(f"round {turn}: random.Random({turn})")
        chance = random.Random(turn)
        if turn % STORE_LIFE == 0:
            stop(live)
            path = tmp_path / f"store{turn}"
            storage.create(path, tiny_spec())
            oracle, told = Oracle(path), []
        while len(live) < 3:
            told.append(tmp_path / f"told{turn}.{len(told)}")
            live.append(start(writers, path, told[-1], 100_000 * len(told), chance, PAUSE))
        wait(chance, told[-1])
        chance.shuffle(live)
        victims, live = live[: (count := chance.choice((1, 2)))], live[count:]
        assert [victim.kill() for victim in victims] == [-signal.SIGKILL] * count
        assert all(child.alive() for child in live), [child.said for child in live]
        oracle.check([each for file in told for each in read_told(file)])
    stop(live)
    finish(oracle, [each for file in told for each in read_told(file)])
    print(f"{rounds} rounds of 1 or 2 kills, {len(oracle.known):,} episodes in the last store")


def stop(live: list[Child]) -> None:
    while live:
        assert live.pop().kill() == -signal.SIGKILL
