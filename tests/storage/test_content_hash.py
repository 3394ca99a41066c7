from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import storage
from storage.column_file import ColumnFile
from storage.schema import make_schema
from tests.storage.zoo import Tiny, play, tiny_spec


def write(path: Path, *, episodes: tuple[int, ...] = (0, 1, 2), **settings) -> Path:
    store = storage.create(path, tiny_spec())
    with store.writer(**settings) as writer:
        for episode in episodes:
            play(writer, 0, episode)
    return path


def test_uuid_time_run_and_segmentation_do_not_count(tmp_path: Path) -> None:
    a = write(tmp_path / "a", run="x")
    b = write(tmp_path / "b", run="y", row_budget=2, capacity=512)
    assert len(storage.open(b).segments) > len(storage.open(a).segments)
    assert storage.open(a).uuid != storage.open(b).uuid
    assert storage.content_hash(a) == storage.content_hash(b)


def test_order_and_episodes_count(tmp_path: Path) -> None:
    hashes = {
        storage.content_hash(write(tmp_path / "a")),
        storage.content_hash(write(tmp_path / "b", episodes=(1, 0, 2))),
        storage.content_hash(write(tmp_path / "c", episodes=(0, 1))),
    }
    assert len(hashes) == 3


def test_seeds_and_endings_count(tmp_path: Path) -> None:
    hashes = set()
    for seed, cut in ((None, False), (0, False), (0, True)):
        store = storage.create(tmp_path / f"{seed}{cut}", tiny_spec())
        step = Tiny(0, 1).step(0) | {"truncated": not cut}
        with store.writer() as writer:
            writer.begin(0, np.zeros(3), seed=seed)
            writer.step(0, **step)
        hashes.add(storage.content_hash(store.path))
    assert len(hashes) == 3


@pytest.mark.parametrize(
    "name",
    [c.name for c in make_schema(tiny_spec().observation_space, tiny_spec().action_space).columns],
)
def test_any_changed_byte_counts(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "store")
    before = storage.content_hash(path)
    store = storage.open(path)
    column = store.schema.column(name)
    file = ColumnFile(store.paths.segment(0) / name, column, store.segments[0].capacity)
    rows = file.map(store.n_rows, writable=True)
    rows.reshape(-1).view("u1")[-1] ^= 1
    assert storage.content_hash(path) != before
    rows.reshape(-1).view("u1")[-1] ^= 1
    assert storage.content_hash(path) == before
