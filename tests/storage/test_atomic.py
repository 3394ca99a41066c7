from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from storage.atomic import append_all, disk_full_as_error, write_atomic
from storage.errors import DiskFullError


def test_replaces_whole_files_and_leaves_nothing_else(tmp_path: Path) -> None:
    staging = tmp_path / "staging"
    staging.mkdir()
    write_atomic(tmp_path / "a.json", b"old", staging)
    write_atomic(tmp_path / "a.json", b"new", staging)
    assert (tmp_path / "a.json").read_bytes() == b"new"
    assert list(staging.iterdir()) == []


def test_disk_full_names_path_needed_and_free_bytes(tmp_path: Path) -> None:
    needed = pytest.raises(DiskFullError, match=r"rows needs 1,234 more bytes, [\d,]+ are free")
    with needed, disk_full_as_error(tmp_path / "rows", 1234):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(PermissionError), disk_full_as_error(tmp_path, 1):
        raise PermissionError


def test_a_half_written_record_is_cut_back(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"good")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    with pytest.raises(DiskFullError):
        append_all(descriptor, b"record", path)
    monkeypatch.undo()
    assert path.read_bytes() == b"good"
    append_all(descriptor, b"record", path)
    os.close(descriptor)
    assert path.read_bytes() == b"goodrecord"
