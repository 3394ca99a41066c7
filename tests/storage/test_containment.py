from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from storage.containment import open_regular, require_folders, require_inside, require_regular
from storage.errors import CorruptStoreError
from storage.layout import StorePaths


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside the store."""
    path = tmp_path / "secret"
    path.write_text("mine")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    for folder in StorePaths(made).folders():
        folder.mkdir(parents=True)
    return made


def test_links_below_the_root_are_refused_at_every_level(root: Path, secret: Path) -> None:
    inner = root / "steps.zarr/000000/reward"
    inner.mkdir(parents=True)
    (inner / "c.0").write_bytes(b"rows")
    require_inside(root, inner / "c.0")
    require_inside(root, root / "steps.zarr/000001/not/there")
    for place in ("steps.zarr/000000/reward/c.0", "steps.zarr/000000/reward", "steps.zarr"):
        (root / place).rename(root.parent / "moved")
        (root / place).symlink_to(root.parent / "moved")
        with pytest.raises(CorruptStoreError, match=rf"{place} is a symbolic link.*put what"):
            require_inside(root, inner / "c.0")
        (root / place).unlink()
        (root.parent / "moved").rename(root / place)
    require_inside(root, inner / "c.0")


def test_a_store_as_a_whole_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    require_inside(tmp_path / "link", tmp_path / "link/log/000000.log")
    require_folders(StorePaths(tmp_path / "link"))


@pytest.mark.parametrize("path", ["/etc/passwd", "steps.zarr/../../secret"])
def test_paths_that_leave_the_root(root: Path, path: str) -> None:
    with pytest.raises(CorruptStoreError, match="nothing outside it is touched"):
        require_inside(root, root / path)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_TRUNC])
def test_a_link_is_neither_read_nor_written_through(root: Path, secret: Path, flags: int) -> None:
    (root / "locks/000000.lock").symlink_to(secret)
    (root / "locks/000001.lock").symlink_to(root.parent / "made")
    for name in ("000000", "000001"):
        with pytest.raises(CorruptStoreError, match=rf"{name}\.lock is a symbolic link"):
            open_regular(root / f"locks/{name}.lock", flags)
    assert secret.read_text() == "mine"
    assert not (root.parent / "made").exists()


def test_pipes_devices_sockets_and_folders_do_not_block(root: Path) -> None:
    os.mkfifo(root / "log/pipe")
    (root / "log/folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.fspath(root / "log/socket"))
        for name in ("pipe", "folder", "socket"):
            with pytest.raises(CorruptStoreError, match=f"log/{name} is a .*where a file belongs"):
                open_regular(root / "log" / name, os.O_RDONLY)
    with pytest.raises(CorruptStoreError, match="is a device"):
        open_regular("/dev/zero", os.O_RDWR)


def test_regular_files_open_as_ever(root: Path) -> None:
    path = root / "log/a"
    with open(path, "w", opener=open_regular) as file:
        file.write("text")
    with open(path, opener=open_regular) as file:
        assert file.read() == "text"
    status = require_regular(path)
    assert status is not None
    assert status.st_size == 4
    assert require_regular(root / "log/none") is None
    with pytest.raises(FileNotFoundError):
        open_regular(root / "log/none", os.O_RDONLY)


@pytest.mark.parametrize("folder", StorePaths(Path("x")).folders())
def test_top_folders_that_are_links_or_files(root: Path, folder: Path, tmp_path: Path) -> None:
    place = root / folder.name
    place.rmdir()
    require_folders(StorePaths(root))
    place.symlink_to(tmp_path)
    with pytest.raises(CorruptStoreError, match=rf"{folder.name} is a symbolic link"):
        require_folders(StorePaths(root))
    place.unlink()
    place.write_text("x")
    with pytest.raises(CorruptStoreError, match=rf"{folder.name} is a file where a folder"):
        require_folders(StorePaths(root))
