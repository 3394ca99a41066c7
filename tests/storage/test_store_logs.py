from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

import storage
from storage.errors import CorruptStoreError
from tests.storage.zoo import check_tiny, play, tiny_spec


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(row_budget=1) as writer:
        for episode in range(3):
            play(writer, 0, episode)
    return tmp_path / "store"


@pytest.mark.parametrize("content", [b"", b"\0" * 700])
def test_a_blank_log_hides_its_own_segment_alone(path: Path, content: bytes, caplog) -> None:
    """A power cut may leave a name without its bytes."""
    (path / "log/000001.log").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        store = storage.open(path)
    assert "000001.log is empty" in caplog.text
    assert [info.id for info in store.segments] == [0, 2]
    for index in range(2):
        check_tiny(store, store.episode(index).record)
    with storage.open(path, mode="r+").writer() as writer:
        play(writer, 0, 7)
    assert (path / "log/000001.log").read_bytes() == content  # its rows may be worth something
    assert storage.open(path).n_episodes == 3


def test_a_blank_log_of_a_segment_without_rows_is_cleared(path: Path) -> None:
    with storage.open(path, mode="r+").writer() as writer:
        writer.begin(0, [0.0, 0.0, 0.0])
        made = writer.open_episode(0).segment
    folder = path / f"steps.zarr/{made:06d}"
    for file in folder.glob("*/c.*"):
        with file.open("r+b") as opened:
            opened.truncate(32_768)
    (path / f"log/{made:06d}.log").write_bytes(b"")
    storage.open(path, mode="r+").writer().close()
    assert not folder.exists()
    assert not (path / f"log/{made:06d}.log").exists()
    assert (path / f"locks/{made:06d}.lock").exists()


def test_a_log_that_holds_something_else_is_no_blank(path: Path) -> None:
    (path / "log/000001.log").write_bytes(b"something")
    with pytest.raises(CorruptStoreError, match=r"000001\.log does not start as a commit log"):
        storage.open(path)


def test_a_reader_sees_a_segment_go_and_a_sealed_log_replaced(path: Path) -> None:
    reader = storage.open(path)
    shutil.rmtree(path / "steps.zarr/000001")
    (path / "log/000001.log").unlink()
    assert reader.refresh()
    assert [info.id for info in reader.segments] == [0, 2]
    log = path / "log/000002.log"
    header = log.read_bytes()[: reader.log(2).byte_at(0)]
    log.with_suffix(".new").write_bytes(header)
    log.with_suffix(".new").replace(log)
    assert reader.refresh()
    assert [info.episodes for info in reader.segments] == [1, 0]
    assert not reader.refresh()
