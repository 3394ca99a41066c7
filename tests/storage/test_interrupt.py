"""Ctrl-C anywhere: the store opens, and every acknowledged episode is in it exactly once."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import storage
from storage.errors import WriterStateError
from storage.layout import Ending
from storage.log_appender import LogAppender
from storage.segment_writer import SegmentWriter
from storage.writer import Writer
from tests.storage.interrupts import count_lines, interrupted_at
from tests.storage.zoo import Tiny, check_tiny, play, tiny_spec

EPISODES = 6
CAPACITY = 256
BUDGET = 12
"""So few rows that several of the episodes seal a segment."""


@pytest.fixture
def store(tmp_path: Path) -> storage.Store:
    return storage.create(tmp_path / "store", tiny_spec())


def a_writer(store: storage.Store) -> Writer:
    return store.writer(row_budget=BUDGET, capacity=CAPACITY, publish_interval=0)


def check_whole(path: Path, acknowledged: list) -> None:
    """The store reads and writes; episodes are whole, none comes twice, none is missing."""
    with storage.open(path, mode="r+") as store:
        with store.writer() as writer:  # which salvages, and takes every lock it needs
            play(writer, 0, 1000, steps=1)
        records = [episode.record for episode in store.iterate_episodes()]
        assert all(record in records for record in acknowledged)
        numbers = [record.lane_episode for record in records]
        assert len(set(numbers)) == len(numbers)
        for record in records:
            whole = record.ending in (Ending.TERMINATED, Ending.TRUNCATED)
            check_tiny(store, record, None if whole else record.length)


def interrupted_run(store: storage.Store, at: int, error: type[BaseException]) -> list:
    """Play episodes, and an interrupt into them; whoever is interrupted closes, and goes."""
    acknowledged: list = []
    try:
        with interrupted_at(at, error), a_writer(store) as writer:
            acknowledged.extend(play(writer, 0, episode) for episode in range(EPISODES))
    except error:
        pass
    return acknowledged


def survived_run(store: storage.Store, at: int, leave: str) -> list:
    """The same, but whoever is interrupted catches it, and goes on with the same writer."""
    acknowledged: list = []
    with a_writer(store) as writer:
        numbers = itertools.count()
        interrupted = False
        while len(acknowledged) < EPISODES:
            number = next(numbers)
            try:
                if interrupted:
                    acknowledged.append(play(writer, 0, number))
                    continue
                with interrupted_at(at):
                    acknowledged.append(play(writer, 0, number))
                at -= LINES_AN_EPISODE
            except KeyboardInterrupt:
                interrupted = True
                record = getattr(writer, leave)(0)
                assert record is None or record.lane_episode == number
                assert writer.open_episode(0) is None
    return acknowledged


LINES_AN_EPISODE = 150


def places(step: int, last: int = 2700) -> Iterator[int]:
    return iter(range(1, last, step))


def test_the_places_are_all_of_a_run(store: storage.Store) -> None:
    def run() -> None:
        with a_writer(store) as writer:
            for episode in range(EPISODES):
                play(writer, 0, episode)

    assert count_lines(run) > 1000


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_at_any_line_loses_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    for at in places(41 if error is KeyboardInterrupt else 97):
        path = tmp_path / str(at)
        store = storage.create(path, tiny_spec())
        acknowledged = interrupted_run(store, at, error)
        check_whole(path, acknowledged)


@pytest.mark.parametrize("leave", ["end", "abandon"])
def test_a_writer_goes_on_after_an_interrupt_at_any_line(tmp_path: Path, leave: str) -> None:
    for at in places(53, 900):
        path = tmp_path / str(at)
        store = storage.create(path, tiny_spec())
        acknowledged = survived_run(store, at, leave)
        check_whole(path, acknowledged)
        assert len(acknowledged) == EPISODES


@pytest.mark.soak
def test_an_interrupt_at_every_line(tmp_path: Path) -> None:
    for at in places(1):
        path = tmp_path / str(at)
        store = storage.create(path, tiny_spec())
        check_whole(path, interrupted_run(store, at, KeyboardInterrupt))


@pytest.mark.soak
@pytest.mark.parametrize("leave", ["end", "abandon"])
def test_a_writer_goes_on_after_an_interrupt_at_every_line(tmp_path: Path, leave: str) -> None:
    for at in places(1, 900):
        path = tmp_path / str(at)
        store = storage.create(path, tiny_spec())
        check_whole(path, survived_run(store, at, leave))


@pytest.mark.parametrize("method", ["episode", "seal"])
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_around_the_append(
    store: storage.Store, monkeypatch, method: str, after: bool
) -> None:
    write = getattr(LogAppender, method)
    calls: list[int] = []

    def interrupted(self: LogAppender, *values: object) -> object:
        calls.append(1)
        if len(calls) == 2 and not after:
            raise KeyboardInterrupt
        appended = write(self, *values)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return appended

    monkeypatch.setattr(LogAppender, method, interrupted)
    acknowledged: list = []
    with pytest.raises(KeyboardInterrupt), a_writer(store) as writer:
        acknowledged.extend(play(writer, 0, episode) for episode in range(30))
    assert acknowledged
    check_whole(store.path, acknowledged)


def test_an_episode_in_the_log_is_neither_forgotten_nor_committed_again(
    store: storage.Store, monkeypatch
) -> None:
    commit = SegmentWriter.commit

    def interrupted(self: SegmentWriter, record: object) -> None:
        commit(self, record)
        raise KeyboardInterrupt

    with a_writer(store) as writer:
        for episode, leave in enumerate(("end", "abandon")):
            with monkeypatch.context() as patch:
                patch.setattr(SegmentWriter, "commit", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    play(writer, 0, episode)
            with pytest.raises(WriterStateError, match="no open episode"):
                writer.step(0, **Tiny(0, episode).step(0))
            getattr(writer, leave)(0)
        third = play(writer, 0, 2)
    assert [e.record.lane_episode for e in store.iterate_episodes()] == [0, 1, 2]
    check_whole(store.path, [third])


def test_half_a_record_of_an_interrupted_write_is_cut(store: storage.Store, monkeypatch) -> None:
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        write(descriptor, data[:50])
        raise KeyboardInterrupt

    with a_writer(store) as writer:
        play(writer, 0, 0)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with pytest.raises(KeyboardInterrupt):
                play(writer, 0, 1)
        second = writer.end(0)
    assert second.length == Tiny(0, 1).length
    check_whole(store.path, [second])


def test_an_interrupted_close_is_finished_and_then_raised(
    store: storage.Store, monkeypatch
) -> None:
    writer = store.writer(lanes=2)
    for lane in range(2):
        play(writer, lane, 3, steps=2)
    publish = SegmentWriter.publish
    calls: list[int] = []

    def interrupted(self: SegmentWriter, interval: float = 0.0) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        publish(self, interval)

    monkeypatch.setattr(SegmentWriter, "publish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        writer.close()
    writer.close()
    records = [episode.record for episode in storage.open(store.path).iterate_episodes()]
    assert [(r.lane, r.length, r.ending) for r in records] == [
        (0, 2, Ending.CUT),
        (1, 2, Ending.CUT),
    ]
    for segment in range(2):
        SegmentWriter.open(store.paths, store.schema, segment).release()


COLLECT = """
import signal
import sys
import numpy as np
import storage

signal.signal(signal.SIGINT, signal.default_int_handler)

store = storage.open(sys.argv[1], mode="r+")
try:
    with store.writer(row_budget=200, publish_interval=0) as writer:
        print("ready", flush=True)
        for number in range(10**9):
            writer.begin(0, np.full(3, float(number)))
            record = writer.step(
                0, action=np.zeros(2, np.float32), reward=float(number),
                observation=np.full(3, number + 0.5), terminated=True, truncated=False,
            )
            print(record.segment, record.ordinal, number, flush=True)
except KeyboardInterrupt:
    pass
"""


def ctrl_c(store: storage.Store, delay: float) -> None:
    """One SIGINT into a process that commits an episode with every step."""
    child = subprocess.Popen(
        [sys.executable, "-c", COLLECT, str(store.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(delay)
    child.send_signal(signal.SIGINT)
    told, errors = child.communicate(timeout=60)
    assert "Error" not in errors, errors
    acknowledged = [tuple(map(int, line.split())) for line in told.splitlines()]
    reader = storage.open(store.path)
    found = {
        (e.record.segment, e.record.ordinal): (e.reward.tolist(), e.observation[:, 0].tolist())
        for e in reader.iterate_episodes()
    }
    for segment, ordinal, number in acknowledged:
        assert found[segment, ordinal] == ([float(number)], [number, number + 0.5])


def test_ctrl_c_at_random_instants(store: storage.Store) -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        ctrl_c(store, float(rng.uniform(0.02, 0.2)))


@pytest.mark.soak
def test_ctrl_c_at_many_random_instants(store: storage.Store) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        ctrl_c(store, float(rng.uniform(0.0, 0.3)))


def test_nothing_is_imported_for_the_first_time_by_a_commit(store: storage.Store) -> None:
    """An interrupt within the import of Arrow left it broken, and every later commit failed."""
    code = COLLECT.replace("range(10**9)", "range(2)").replace(
        'print("ready", flush=True)', "before = set(sys.modules)"
    )
    code += "\nprint(sorted(set(sys.modules) - before))"
    told = subprocess.run(
        [sys.executable, "-c", code, str(store.path)], capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines()[-1] == "[]"
