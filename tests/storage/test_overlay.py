from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import zarr

import storage
from storage.errors import DiskFullError, ReadOnlyStoreError
from storage.overlay import OVERLAY_COLUMNS
from tests.storage.zoo import F4


def test_new_overlays_are_zero_and_keep_what_is_written(f4: F4) -> None:
    overlay = f4.store.overlay(mode="r+")
    caches = overlay.segment(0, 12)
    names = [column.name for column in OVERLAY_COLUMNS]
    assert names == [
        "priority",
        "importance_ratio",
        "far",
        "divergence",
        "value",
        "value_target",
        "draw_count",
        "last_drawn",
    ]
    for name in names:
        assert caches.array(name).tolist() == [0] * 12
    caches.array("value")[3] = 1.5
    caches.array("last_drawn")[11] = -(2**40)
    overlay.close()
    again = f4.store.overlay().segment(0, 12)
    assert again.array("value")[3] == 1.5
    assert again.array("last_drawn")[11] == -(2**40)


def test_addresses_stay_while_the_overlay_grows(f4: F4) -> None:
    caches = f4.store.overlay(mode="r+").segment(0, 12)
    address = caches.address("priority")
    caches.array("priority")[11] = 7
    f4.store.overlay(mode="r+").segment(0, 5000)
    caches.ensure(5000)
    assert caches.address("priority") == address
    assert caches.array("priority").shape == (5000,)
    assert caches.array("priority")[11] == 7
    caches.array("priority")[4999] = 1
    file = f4.path / "overlays/main.zarr/000000/priority/c.0"
    assert file.stat().st_blocks * 512 >= 32768 + 5000 * 4
    assert caches.row_bytes("last_drawn") == 8


def test_foreign_readers_see_what_was_published(f4: F4) -> None:
    overlay = f4.store.overlay("mine", mode="r+")
    caches = overlay.segment(0, 12)
    caches.array("far")[:] = np.arange(12) % 2
    overlay.publish(0, 10)
    root = zarr.open_group(f4.path / "overlays/mine.zarr", mode="r")
    assert root.attrs["store_uuid"] == f4.store.uuid
    assert root["000000"]["far"][:].tolist() == [0, 1] * 5
    assert root["000000/value"].shape == (10,)
    assert sorted(path.name for path in (f4.path / "overlays").iterdir()) == [
        "mine.lock",
        "mine.staging",
        "mine.zarr",
    ]


def test_overlays_are_apart_from_each_other_and_from_the_steps(f4: F4) -> None:
    f4.writer.close()
    before = storage.content_hash(f4.path)
    for value, name in enumerate("ab"):
        f4.store.overlay(name, mode="r+").segment(0, 12).array("value")[:] = value + 1
    assert f4.store.overlay("a").segment(0, 12).array("value").tolist() == [1] * 12
    assert f4.store.overlay("b").segment(0, 12).array("value").tolist() == [2] * 12
    assert storage.content_hash(f4.path) == before


def test_a_read_only_store_takes_overlays_elsewhere(f4: F4, tmp_path: Path) -> None:
    reader = storage.open(f4.path)
    with pytest.raises(ReadOnlyStoreError):
        reader.overlay(mode="r+")
    run = tmp_path / "run"
    reader.overlay(root=run, mode="r+").segment(0, 12).array("value")[2] = 9
    assert reader.overlay(root=run).segment(0, 12).array("value")[2] == 9
    assert (run / "overlays/main.zarr/000000/value/c.0").exists()
    assert list((f4.path / "overlays").iterdir()) == []


def test_what_an_overlay_lacks_reads_as_zeros(f4: F4) -> None:
    absent = f4.store.overlay("never").segment(0, 12)
    assert absent.array("value").tolist() == [0] * 12
    assert absent.address("value") != 0
    with pytest.raises(ValueError, match="read-only"):
        absent.array("value")[0] = 1
    with pytest.raises(ReadOnlyStoreError):
        f4.store.overlay("never").publish(0, 12)
    f4.store.overlay(mode="r+").segment(0, 12).array("value")[:] = 3
    longer = f4.store.overlay().segment(0, 2000)
    assert longer.array("value")[:12].tolist() == [3] * 12
    assert not longer.array("value")[1024:].any()
    with pytest.raises(KeyError, match=r"no overlay column 'rho'; there are priority"):
        longer.array("rho")


def test_a_failed_growth_is_undone(f4: F4, monkeypatch) -> None:
    caches = f4.store.overlay(mode="r+").segment(0, 12)
    sizes = {p: p.stat().st_size for p in (f4.path / "overlays").rglob("c.0")}
    allocate = os.posix_fallocate
    left = [3]

    def three(descriptor: int, offset: int, length: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        allocate(descriptor, offset, length)

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", three)
        with pytest.raises(DiskFullError, match="free"):
            caches.ensure(5000)
    assert caches.rows == 12
    assert {p: p.stat().st_size for p in sizes} == sizes
    caches.ensure(5000)
    assert caches.rows == 5000
