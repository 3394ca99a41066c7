from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import storage
from storage.disk_need import disk_need
from tests.storage.zoo import tiny_spec


def blocks(store: storage.Store) -> int:
    return sum(file.stat().st_size for file in store.paths.steps.rglob("c.*"))


@pytest.mark.parametrize(("steps", "lanes"), [(1, 1), (300, 1), (300, 3), (5000, 2)])
def test_it_is_what_the_files_take_before_they_are_trimmed(
    tmp_path: Path, steps: int, lanes: int
) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    empty = np.zeros((), store.schema.observation[0].dtype)
    observation = np.broadcast_to(empty, store.schema.observation[0].shape)
    with store.writer(lanes=lanes) as writer:
        for lane in range(lanes):
            writer.begin(lane, observation)
        for step in range(steps):
            writer.step(
                step % lanes,
                action=store.env_spec.action_space.sample() * 0,
                reward=0.0,
                observation=observation,
                terminated=False,
                truncated=False,
            )
        assert blocks(store) == disk_need(store.schema, steps, lanes=lanes).total


def test_long_collections_count_full_segments_and_closing_rows(tmp_path: Path) -> None:
    schema = storage.create(tmp_path / "store", tiny_spec()).schema
    rows = 10_000_000 * schema.row_bytes
    need = disk_need(schema, 10_000_000).total
    assert 1.13 * rows < need < 1.14 * rows
    short = disk_need(schema, 10_000_000, longest=4).total
    assert short == pytest.approx(1.25 * need, rel=0.01)
