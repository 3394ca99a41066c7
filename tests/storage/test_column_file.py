from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from storage.column_file import ColumnFile, shard_file_name
from storage.errors import CorruptStoreError, DiskFullError
from storage.schema import Column

COLUMN = Column("observation", np.dtype("<f4"), (3,))


@pytest.fixture
def file(tmp_path: Path) -> ColumnFile:
    made = ColumnFile(tmp_path, COLUMN, 1024)
    made.create()
    return made


def test_shard_names_follow_the_number_of_axes() -> None:
    assert shard_file_name(Column("kind", np.dtype("u1"))) == "c.0"
    assert shard_file_name(COLUMN) == "c.0.0"


def test_index_lists_every_inner_chunk_from_the_first_day(file: ColumnFile) -> None:
    entries = np.fromfile(file.path, "<u8", count=8).reshape(4, 2)
    assert entries[:, 0].tolist() == [16384 + 3072 * i for i in range(4)]
    assert set(entries[:, 1].tolist()) == {256 * 12}


def test_grows_by_real_blocks_and_shrinks_to_inner_chunks(file: ColumnFile) -> None:
    assert file.allocated() == 0
    file.allocate(600)
    assert file.allocated() == 600
    status = file.path.stat()
    assert status.st_blocks * 512 >= status.st_size
    file.allocate(100)
    assert file.allocated() == 600
    file.shrink(257)
    assert file.allocated() == 512
    file.shrink(0)
    assert file.allocated() == 0


def test_a_failed_allocation_is_undone(file: ColumnFile, monkeypatch) -> None:
    file.allocate(256)

    def half(descriptor: int, offset: int, length: int) -> None:
        os.ftruncate(descriptor, offset + length // 2)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", half)
    with pytest.raises(DiskFullError, match=r"c\.0\.0 needs 3,072 more bytes"):
        file.allocate(512)
    assert file.allocated() == 256


def test_maps_share_the_file(file: ColumnFile) -> None:
    file.allocate(256)
    rows = file.map(1024, writable=True)
    rows[255] = [1, 2, 3]
    assert file.map(256, writable=False)[255].tolist() == [1, 2, 3]
    assert np.fromfile(file.path, "<f4", offset=16384 + 255 * 12).tolist() == [1, 2, 3]


def test_a_file_shorter_than_the_log_is_named(file: ColumnFile) -> None:
    file.allocate(256)
    file.require(256)
    with pytest.raises(CorruptStoreError, match=r"c\.0\.0 holds .* counts 257 rows"):
        file.require(257)
    file.path.unlink()
    with pytest.raises(CorruptStoreError, match="missing or was cut"):
        file.require(1)


def test_holes_of_a_sparse_copy_are_filled(file: ColumnFile) -> None:
    """Storing into a hole on a full disk would end the process."""
    file.allocate(1024)
    path = file.path
    content = path.read_bytes()
    path.write_bytes(b"")
    os.truncate(path, len(content))
    assert path.stat().st_blocks == 0
    file.fill_holes()
    assert path.stat().st_blocks * 512 >= len(content)
    assert path.stat().st_size == len(content)
