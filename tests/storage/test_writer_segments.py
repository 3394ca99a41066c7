"""Which segments a writer fills, when it seals them, and what it publishes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import storage
from storage.errors import (
    WriterStateError,
)
from storage.layout import Ending
from storage.writer_settings import capacity_for, default_row_budget
from tests.storage.zoo import f4_spec, play, tiny_spec, write_f4_episode

STEP = {"action": 1, "reward": 1.0, "terminated": False, "truncated": False}


def test_segments_seal_at_the_first_end_past_the_budget(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", f4_spec())
    with store.writer(row_budget=8) as writer:
        for _ in range(3):
            write_f4_episode(writer, "A")
    assert [(info.rows, info.sealed) for info in store.segments] == [(12, True), (6, False)]
    size = (tmp_path / "store/steps.zarr/000000/reward/c.0").stat().st_size
    assert size == 32768 + 256 * 8
    assert not (tmp_path / "store/locks").joinpath("000002.lock").exists()


def test_a_writer_that_nobody_follows_seals_and_trims_when_it_closes(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", f4_spec())
    with store.writer(lanes=2, seal=True) as writer:
        write_f4_episode(writer, "A")
        writer.begin(0, np.zeros(1))
        writer.step(0, **STEP, observation=[1.0])
        writer.begin(1, np.zeros(1))
        writer.abandon(1)
    assert [(info.rows, info.steps, info.sealed) for info in store.segments] == [
        (8, 6, True),
        (0, 0, True),
    ]
    sizes = [
        (tmp_path / f"store/steps.zarr/{name}/reward/c.0").stat().st_size
        for name in ("000000", "000001")
    ]
    assert sizes == [32768 + 256 * 8, 32768]
    with storage.open(tmp_path / "store") as again:
        assert len(again.columns["reward"][:]) == 8
        assert again.columns["truncated"][6]


def test_an_episode_that_outgrows_the_shard_is_cut(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", f4_spec())
    with store.writer(row_budget=256, capacity=256) as writer:
        writer.begin(0, np.zeros(1))
        for t in range(254):
            assert writer.step(0, observation=[t + 1.0], **STEP) is None
        record = writer.step(0, observation=[255.0], **STEP)
        assert (record.ending, record.length) == (Ending.CUT, 255)
        assert writer.open_episode(0) is None
        with pytest.raises(WriterStateError):
            writer.step(0, observation=[0.0], **STEP)
        writer.begin(0, [255.0])
        writer.step(0, observation=[256.0], **STEP)
    assert [(i.rows, i.sealed, i.capacity) for i in store.segments] == [
        (256, True, 256),
        (2, False, 256),
    ]
    assert store.columns["truncated"][253:256].tolist() == [False, True, False]
    assert store.columns["observation"][255].tolist() == [255]


def test_longer_episodes_raise_the_capacity(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec(max_episode_steps=400_000))
    with store.writer(row_budget=1024) as writer:
        play(writer, 0, 0)
    assert store.segments[0].capacity == 2**19


@pytest.mark.parametrize(
    ("window", "lanes", "budget"),
    [(2**18, 1, 32768), (2**18, 8, 4096), (2**15, 8, 1024), (2**22, 1, 65536), (300_000, 1, 65536)],
)
def test_row_budget_scales_with_window_and_lanes(window: int, lanes: int, budget: int) -> None:
    assert default_row_budget(window, lanes) == budget


def test_publishing_is_throttled_but_complete_at_close(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", f4_spec())
    metadata = tmp_path / "store/steps.zarr/000000/zarr.json"

    def published() -> int:
        arrays = json.loads(metadata.read_text())["consolidated_metadata"]["metadata"]
        (rows,) = {array["shape"][0] for array in arrays.values()}
        return rows

    with store.writer(publish_interval=3600) as writer:
        write_f4_episode(writer, "A")
        assert published() == 6
        write_f4_episode(writer, "B")
        assert published() == 6
        store.refresh()
        assert store.n_rows == 10
        writer.publish()
        assert published() == 10
        write_f4_episode(writer, "C")
    assert published() == 12
    alone = json.loads((tmp_path / "store/steps.zarr/000000/kind/zarr.json").read_text())
    assert alone["shape"] == [12]
    assert list((tmp_path / "store/staging").iterdir()) == []


def test_capacity_has_an_end() -> None:
    assert capacity_for(None, 1024, 10**9) == 2**22
    assert capacity_for(1024, 512, None) == 1024
