"""Readers, ours and others', while writers are at work: whole episodes, and never fewer."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.dataset
import pytest
import zarr

import storage
from storage.checksum import crc32c
from storage.episode import Episode
from storage.errors import SharpwaveError
from storage.layout import Ending
from tests.faults.nursery import Child, Nursery, eventually
from tests.storage.zoo import check_tiny, tiny_spec

QUICK, LONG = 2.0, 180.0
"""Seconds of reading."""


class Reader:
    """One store that stays open and is refreshed, and everybody else's way to read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = storage.open(path)
        self.looks = self.withdrawn = 0
        self._checked: set[tuple[int, int, int]] = set()
        self._published: dict[str, int] = {}
        self._tables = 0
        self._steady: list[tuple[str, int, int]] = []

    def look(self, chance: random.Random) -> None:
        self.store.refresh()
        self.own()
        snapshot = self.store
        if self.looks % 5 == 0:
            snapshot = storage.open(self.path)
        with self.unless_withdrawn(snapshot):
            self.lazily(snapshot)
        self.as_tables()
        for segment in chance.sample(steady(self.store), min(4, len(steady(self.store)))):
            self.as_zarr(segment)
        self.looks += 1

    def own(self) -> None:
        """Every episode that is new, all values and checksums; those of steady runs never go."""
        known = []
        for info in self.store.segments:
            log = self.store.log(info.id)
            if info.run.startswith("steady"):
                known += [(info.run, info.id, int(o)) for o in log.records["ordinal"]]
        assert set(self._steady) <= set(known), "an episode was there and is gone"
        self._steady = known
        for index in range(max(0, self.store.n_episodes - 200), self.store.n_episodes):
            with self.unless_withdrawn(self.store):
                self.check(self.store.episode(index))

    @contextmanager
    def unless_withdrawn(self, store: storage.Store) -> Iterator[None]:
        """Forgive what goes wrong with episodes that their run took back after ``store`` saw them.

        Rows of a run that goes back are used again. Whoever reads them meanwhile learns that by
        looking again: the episode's record is gone, or another one.
        """
        try:
            yield
        except (AssertionError, OSError, KeyError, SharpwaveError):
            seen = others(store)
            for _ in range(100):  # a rewind that is at work takes the log away last
                with storage.open(self.path) as now:
                    if not seen <= others(now):
                        break
                time.sleep(0.02)
            else:
                raise
            self.withdrawn += 1

    def check(self, episode: Episode) -> None:
        record = episode.record
        key = record.segment, record.ordinal, record.lane_episode
        if key in self._checked:
            return
        self._checked.add(key)
        cut = record.ending in (Ending.CUT, Ending.SALVAGED)
        check_tiny(self.store, record, steps=record.length if cut else None)
        log = self.store.log(record.segment)
        index = int(np.searchsorted(log.records["ordinal"], record.ordinal))
        sums = [crc32c(np.ascontiguousarray(rows)) for rows in episode.columns.values()]
        assert sums == log.column_checksums[index].tolist()

    def lazily(self, store: storage.Store) -> None:
        """Dask sees the rows that the store shows, of whole episodes."""
        rows = store.to_dask()
        kinds = rows["kind"].compute()
        assert len(kinds) == store.n_rows
        assert np.count_nonzero(kinds == 2) == store.n_episodes
        assert np.count_nonzero(kinds == 1) == store.n_steps

    def as_tables(self) -> None:
        """Arrow's dataset of the episode tables: as many as ever, and none twice."""
        paths = [self.store.paths.episode_table(segment) for segment in steady(self.store)]
        files = [path for path in paths if path.exists()]  # others' may go at any moment
        if not files:
            return
        table = pyarrow.dataset.dataset(files, format="ipc").to_table().to_pandas()
        mine = table[table.run.str.startswith("steady")]
        assert not mine.duplicated(["segment", "ordinal"]).any()
        assert len(mine) >= self._tables
        self._tables = len(mine)

    def as_zarr(self, segment: int) -> None:
        """A foreign reader's columns are of one length, whole episodes, and a prefix of ours."""
        name = f"{segment:06d}"
        columns = {k: a[...] for k, a in zarr.open_group(self.path / "steps.zarr" / name).arrays()}
        lengths = {len(column) for column in columns.values()}
        assert len(lengths) == 1
        (rows,) = lengths
        assert rows >= self._published.get(name, 0)
        self._published[name] = rows
        if not rows:
            return
        assert columns["kind"][-1] == 2
        fresh = storage.open(self.path).segment(segment)
        for key, column in columns.items():
            np.testing.assert_array_equal(fresh.array(key)[:rows], column)


def others(store: storage.Store) -> set[tuple[int, bytes]]:
    """The records of all runs that may take episodes back."""
    mine = [info.id for info in store.segments if not info.run.startswith("steady")]
    return {(segment, each.tobytes()) for segment in mine for each in store.records(segment)}


def steady(store: storage.Store) -> list[int]:
    return [info.id for info in store.segments if info.run.startswith("steady")]


def start_all(writers: Nursery, path: Path, *, changing: bool) -> Iterator[Child]:
    for number in range(3):
        told = path.with_name(f"told{number}")
        options = {"run": f"steady{number}", "row_budget": 300, "publish_interval": 0.05}
        yield writers.start("write", path, told, 10**6 * number, 2, options, 0.02)
        eventually(told.exists, "no writer began")
    if changing:
        yield writers.start("go_back", path, 10**7)


@pytest.mark.parametrize(
    ("changing", "seconds"),
    [
        (True, QUICK),
        pytest.param(False, LONG, marks=pytest.mark.soak),
        pytest.param(True, LONG, marks=pytest.mark.soak),
    ],
)
def test_readers_see_whole_episodes_and_never_fewer(
    writers: Nursery, tmp_path: Path, changing: bool, seconds: float
) -> None:
    """``changing``: another run goes back to positions and drops segments meanwhile."""
    path = tmp_path / "store"
    storage.create(path, tiny_spec())
    children = list(start_all(writers, path, changing=changing))
    try:
        reader, chance = Reader(path), random.Random(1)
        until = time.monotonic() + seconds
        while time.monotonic() < until or reader.looks < 5:
            reader.look(chance)
        assert all(child.alive() for child in children), [child.said for child in children]
    finally:
        codes = [child.kill() for child in children]
    assert codes == [-signal.SIGKILL] * len(children)
    print(f"{reader.looks:,} looks, {reader.store.n_episodes:,} episodes, {reader.withdrawn} gone")
    assert changing or not reader.withdrawn
