from __future__ import annotations

import gc
import multiprocessing
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

import storage
from storage.commit_log import CommitLog
from storage.layout import Ending
from storage.salvage import salvage
from storage.segment_writer import SegmentWriter
from storage.writer import Writer
from tests.storage.endless_writer import write_until_killed
from tests.storage.zoo import F4, Tiny, check_tiny, play, tiny_spec

LANES = 3


def die(writer: Writer) -> None:
    """What kill -9 does to a writer, as far as the same process can: locks and maps go."""
    for lane in writer._lanes:
        if lane.segment is not None:
            lane.segment.release()
            lane.unbind()
    writer._closed = True
    gc.collect()


@pytest.fixture
def store(tmp_path: Path) -> storage.Store:
    return storage.create(tmp_path / "store", tiny_spec())


def test_the_open_episode_becomes_a_truncated_one(f4: F4) -> None:
    die(f4.writer)
    assert storage.open(f4.path).n_episodes == 3
    store = storage.open(f4.path, mode="r+")
    report = salvage(store)
    (record,) = report.episodes
    assert (record.ending, record.length, record.seed) == (Ending.SALVAGED, 4, 300)
    assert (record.lane_episode, record.episode_return) == (3, 4.0)
    episode = storage.open(f4.path).episode(-1)
    assert episode.observation[:, 0].tolist() == [300, 301, 302, 303, 304]
    assert episode.truncated.tolist() == [False, False, False, True]
    assert not episode.terminated.any()
    group = zarr.open_group(f4.path / "steps.zarr/000000", mode="r")
    assert group["kind"][:].tolist() == [1, 1, 1, 1, 1, 2, 1, 1, 1, 2, 1, 2, 1, 1, 1, 1, 2]
    assert store.episodes["ending"].to_pylist()[-1] == "salvaged"
    assert salvage(store).episodes == ()


def test_asking_for_a_writer_salvages(store: storage.Store) -> None:
    writer = store.writer()
    play(writer, 0, 1, steps=3)
    die(writer)
    with storage.open(store.path, mode="r+").writer() as second:
        play(second, 0, 2)
    table = storage.open(store.path).episodes
    assert table["length"].to_pylist() == [3, Tiny(0, 2).length]
    assert table["ending"].to_pylist()[0] == "salvaged"


def test_live_writers_are_left_alone(f4: F4) -> None:
    assert salvage(storage.open(f4.path, mode="r+")).episodes == ()
    assert f4.writer.open_episode(0).steps == 4


def test_an_episode_without_a_whole_step_is_nothing(store: storage.Store) -> None:
    writer = store.writer()
    writer.begin(0, np.zeros(3))
    die(writer)
    assert salvage(store).episodes == ()
    assert store.n_rows == 0


def test_a_segment_killed_before_its_first_allocation_is_empty(store: storage.Store) -> None:
    made = SegmentWriter.create(store.paths, store.schema, store.uuid, "r", 0, 1024)
    assert made.allocated == 0
    made.release()
    assert salvage(store).episodes == ()
    assert [info.rows for info in store.segments] == [0]


@pytest.mark.parametrize(("episode", "ending"), [(0, Ending.TERMINATED), (1, Ending.TRUNCATED)])
def test_an_end_that_was_stored_but_not_committed_keeps_its_ending(
    store: storage.Store, monkeypatch, episode: int, ending: Ending
) -> None:
    writer = store.writer()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SegmentWriter, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            play(writer, 0, episode)
    die(writer)
    (record,) = salvage(store).episodes
    assert record.ending is ending
    check_tiny(store, record)


def test_a_torn_log_record_is_cut_and_its_episode_salvaged(store: storage.Store) -> None:
    writer = store.writer()
    play(writer, 0, 0)
    record = play(writer, 0, 1)
    die(writer)
    log = store.paths.log(0)
    os.truncate(log, log.stat().st_size - 3)
    torn = CommitLog(log).torn_bytes()
    assert torn > 0
    report = salvage(store)
    assert report.torn_bytes == torn
    (salvaged,) = report.episodes
    assert (salvaged.length, salvaged.start) == (record.length, record.start)
    check_tiny(store, salvaged)
    assert CommitLog(log).torn_bytes() == 0


def test_without_its_note_an_episode_is_salvaged_unseeded(store: storage.Store) -> None:
    writer = store.writer()
    play(writer, 0, 1, steps=3)
    die(writer)
    store.paths.open_episode(0).unlink()
    (record,) = salvage(store).episodes
    assert (record.seed, record.lane_episode, record.length) == (None, -1, 3)


def test_half_made_segments_are_cleared(store: storage.Store) -> None:
    (store.paths.staging / "000005").mkdir()
    (store.paths.staging / "000005" / "rows").write_bytes(b"x")
    salvage(store)
    assert list(store.paths.staging.iterdir()) == []


@pytest.fixture(scope="module")
def server():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["storage.step_kernel", "tests.storage.endless_writer"])
    return context


def kill_and_check(server, path: Path, delay: float) -> tuple[int, int]:
    """Kill a writer after its first episode and ``delay`` seconds; check all it left."""
    storage.create(path, tiny_spec())
    heard, tell = server.Pipe(duplex=False)
    child = server.Process(target=write_until_killed, args=(path, tell, LANES))
    child.start()
    tell.close()
    acknowledged = [heard.recv()]
    time.sleep(delay)
    child.kill()
    try:
        while True:
            acknowledged.append(heard.recv())
    except (EOFError, OSError):
        pass
    child.join()
    return check_survivors(path, acknowledged)


def check_survivors(path: Path, acknowledged: list) -> tuple[int, int]:
    before = storage.open(path)
    for record in acknowledged:
        check_tiny(before, record)
    store = storage.open(path, mode="r+")
    report = salvage(store)
    assert len(report.episodes) <= LANES
    for record in report.episodes:
        check_tiny(store, record, steps=record.length)
    known = {(record.segment, record.ordinal) for record in acknowledged}
    found = {(e.record.segment, e.record.ordinal) for e in store.iterate_episodes()}
    assert known <= found
    assert len(found) <= len(known) + 2 * LANES
    for episode in store.iterate_episodes():
        record = episode.record
        whole = record.ending is not Ending.SALVAGED
        check_tiny(store, record, steps=None if whole else record.length)
    for info in store.segments:
        foreign = zarr.open_group(path / "steps.zarr" / f"{info.id:06d}", mode="r")["reward"][:]
        assert len(foreign) <= info.rows
        ours = store.segment(info.id).array("reward")[: len(foreign)]
        np.testing.assert_array_equal(foreign, ours)
    with store.writer() as writer:
        play(writer, 0, 3)
    return len(acknowledged), len(report.episodes)


def kills(count: int) -> list:
    rng = random.Random(7)
    return [rng.uniform(0, 0.3) for _ in range(count)]


@pytest.mark.parametrize(
    "delays", [kills(10), pytest.param(kills(50), marks=pytest.mark.soak)], ids=["10", "50"]
)
def test_kill_9_at_random_instants_loses_nothing_committed(
    server, tmp_path: Path, delays: list[float]
) -> None:
    """zarr-python: a crash inside a shard leaves it unreadable."""
    results = [
        kill_and_check(server, tmp_path / f"store{index}", delay)
        for index, delay in enumerate(delays)
    ]
    assert sum(episodes for episodes, _ in results) > len(delays)
    assert sum(salvaged for _, salvaged in results) > len(delays) // 2


@pytest.mark.parametrize("ending", ["salvaged", "cut"])
def test_a_kill_within_a_closing_does_not_make_the_environment_end_it(
    store: storage.Store, monkeypatch, ending: str
) -> None:
    """The last step was flagged already, and its record not there yet."""
    writer = store.writer()
    tiny = Tiny(0, 1)
    writer.begin(0, tiny.observation(0))
    writer.step(0, **tiny.step(0) | {"terminated": False, "truncated": False})
    with monkeypatch.context() as patch:
        patch.setattr(SegmentWriter, "commit", _killed)
        if ending == "cut":
            with pytest.raises(_KilledError):
                writer.end(0)
            die(writer)
        else:
            die(writer)
            with pytest.raises(_KilledError):
                salvage(store)
    (record,) = salvage(storage.open(store.path, mode="r+")).episodes
    assert (record.length, record.ending) == (1, Ending.SALVAGED)


class _KilledError(Exception):
    pass


def _killed(*_: object) -> None:
    raise _KilledError
