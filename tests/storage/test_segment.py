from __future__ import annotations

from pathlib import Path

import pytest

import storage
from storage.errors import (
    CorruptStoreError,
)
from tests.storage.zoo import F4, check_tiny, play, tiny_spec


def test_a_growing_store_is_followed_by_refresh(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    reader = storage.open(tmp_path / "store")
    with store.writer(row_budget=30, publish_interval=0) as writer:
        segment = address = None
        for episode in range(25):
            record = play(writer, 0, episode)
            assert reader.refresh()
            assert not reader.refresh()
            assert reader.n_episodes == episode + 1
            check_tiny(reader, record)
            if record.segment == 0:
                segment = reader.segment(0)
                address = address or segment.address("observation")
                assert segment.address("observation") == address
                assert segment.rows == record.start + record.length + 1
    assert reader.n_steps == reader.episodes["length"].to_numpy().sum()
    store.refresh()
    assert store.n_steps == reader.n_steps


def test_a_column_file_that_was_cut_is_named(f4: F4) -> None:
    f4.writer.close()
    file = f4.path / "steps.zarr/000000/reward/c.0"
    with file.open("r+b") as opened:
        opened.truncate(32768 + 8)
    store = storage.open(f4.path)
    assert store.n_episodes == 4
    with pytest.raises(CorruptStoreError, match=r"reward/c\.0 holds .* counts 17 rows"):
        store.columns["reward"][:]
