from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import pytest

import storage
from storage.errors import DiskFullError, SegmentLockedError
from storage.segment_files import next_allocation
from storage.segment_writer import SegmentWriter
from tests.storage.zoo import tiny_spec


def test_allocation_doubles_in_bounded_steps() -> None:
    sizes = [0]
    while sizes[-1] < 2**18:
        sizes.append(next_allocation(sizes[-1], sizes[-1] + 1, 100, 2**18))
    assert sizes[:9] == [0, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]
    assert sizes[9:] == [196608, 262144]


def test_wide_rows_are_allocated_in_smaller_steps() -> None:
    assert next_allocation(0, 1, 84 * 84 * 100, 2**18) == 256
    assert next_allocation(2**16, 2**16 + 1, 7056, 2**18) == 2**16 + 9728
    # One row of more than 64 MiB still makes a whole inner chunk.
    assert next_allocation(0, 1, 100 * 2**20, 2**18) == 256


def test_never_beyond_the_capacity() -> None:
    assert next_allocation(512, 513, 8, 768) == 768
    assert next_allocation(0, 5000, 8, 2**18) == 5120


@pytest.fixture
def store(tmp_path: Path) -> storage.Store:
    return storage.create(tmp_path / "store", tiny_spec())


def make(store: storage.Store) -> SegmentWriter:
    return SegmentWriter.create(store.paths, store.schema, store.uuid, "r", 2, 2048)


def test_all_columns_are_allocated_together(store: storage.Store) -> None:
    segment = make(store)
    segment.ensure(1)
    assert segment.allocated == 1024
    segment.ensure(1024)
    assert segment.allocated == 1024
    segment.ensure(1025)
    assert segment.allocated == 2048
    for name, array in segment.arrays.items():
        assert len(array) == 2048
        assert not array.any(), name
    segment.release()
    again = SegmentWriter.open(store.paths, store.schema, 0)
    assert (again.allocated, again.rows, again.lane) == (2048, 0, 2)
    again.release()


def test_a_segment_has_one_writer(store: storage.Store) -> None:
    segment = make(store)
    with pytest.raises(SegmentLockedError):
        SegmentWriter.open(store.paths, store.schema, 0)
    segment.release()
    segment.release()
    SegmentWriter.open(store.paths, store.schema, 0).release()


def test_released_maps_are_unmapped(store: storage.Store) -> None:
    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count(str(store.path))

    segment = make(store)
    assert mapped() == len(store.schema.columns)
    segment.release()
    gc.collect()
    assert mapped() == 0


def test_a_failed_step_is_undone_in_all_columns(store: storage.Store, monkeypatch) -> None:
    segment = make(store)
    segment.ensure(1)
    files = sorted((store.path / "steps.zarr/000000").glob("*/c.*"))
    sizes = [file.stat().st_size for file in files]
    allocate = os.posix_fallocate
    granted: list[int] = []

    def full_after_four(descriptor: int, offset: int, length: int) -> None:
        if len(granted) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        granted.append(length)
        allocate(descriptor, offset, length)

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full_after_four)
        with pytest.raises(DiskFullError):
            segment.ensure(1025)
    assert segment.allocated == 1024
    assert [file.stat().st_size for file in files] == sizes
    segment.ensure(1025)
    assert segment.allocated == 2048
    segment.release()


def test_a_smaller_step_is_tried_when_there_is_little_room(
    store: storage.Store, monkeypatch
) -> None:
    segment = make(store)
    segment.ensure(1)
    allocate = os.posix_fallocate

    def little(descriptor: int, offset: int, length: int) -> None:
        if length > 512 * 24:
            raise OSError(errno.ENOSPC, "No space left on device")
        allocate(descriptor, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", little)
    segment.ensure(1025)
    assert segment.allocated == 1280
    segment.release()
