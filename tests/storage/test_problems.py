from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import storage
from pipeline.summary import summarize
from storage import problems
from storage.errors import CorruptStoreError
from storage.segment_writer import SegmentWriter
from tests.storage.zoo import F4


def cut(path: Path) -> None:
    os.truncate(path / "steps.zarr/000000/reward/c.0", 32768 + 8)


def without_column(path: Path) -> None:
    shutil.rmtree(path / "steps.zarr/000000/reward")


def without_file(path: Path) -> None:
    (path / "steps.zarr/000000/reward/c.0").unlink()


def without_folder(path: Path) -> None:
    shutil.rmtree(path / "steps.zarr/000000")


def without_log(path: Path) -> None:
    (path / "log/000000.log").unlink()


def test_a_whole_store_has_none(f4: F4, caplog) -> None:
    assert storage.open(f4.path).problems() == []
    assert summarize(f4.store).problems == []
    assert caplog.text == ""


@pytest.mark.parametrize("seal", [False, True])
@pytest.mark.parametrize("damage", [cut, without_column, without_file, without_folder])
def test_damage_is_told_and_writers_are_refused(f4: F4, caplog, damage, seal: bool) -> None:
    f4.writer.close()
    if seal:
        segment = SegmentWriter.open(f4.store.paths, f4.store.schema, 0)
        segment.seal()
    damage(f4.path)
    store = storage.open(f4.path, mode="r+")
    (problem,) = store.problems()
    assert "steps.zarr/000000" in problem
    assert problem in caplog.text
    assert summarize(store).problems == [problem]
    with pytest.raises(CorruptStoreError, match=r"steps\.zarr/000000"):
        store.writer()


def test_a_folder_without_its_log_is_told(f4: F4) -> None:
    f4.writer.close()
    without_log(f4.path)
    store = storage.open(f4.path, mode="r+")
    (problem,) = store.problems()
    assert "steps.zarr/000000 has no log" in problem
    store.writer().close()  # what nobody counts hinders nobody


@pytest.mark.parametrize("place", ["000000", "000000/reward", "000000/reward/c.0"])
def test_links_are_told_and_writers_are_refused(f4: F4, tmp_path: Path, place: str) -> None:
    """A segment on another disk would be read, and written, outside the store."""
    f4.writer.close()
    (f4.path / "steps.zarr" / place).rename(tmp_path / "outside")
    (f4.path / "steps.zarr" / place).symlink_to(tmp_path / "outside")
    store = storage.open(f4.path, mode="r+")
    problems = store.problems()
    assert problems
    assert all("is a symbolic link" in problem for problem in problems)
    with pytest.raises(CorruptStoreError, match="symbolic link"):
        store.writer()
    with pytest.raises(CorruptStoreError, match="symbolic link"):
        store.episode(0)


def test_a_log_that_went_since_it_was_listed_is_no_problem(f4: F4, monkeypatch) -> None:
    """A run may drop a segment while somebody opens the store."""
    listed = problems.log_inodes
    monkeypatch.setattr(problems, "log_inodes", lambda paths: listed(paths) | {7: 1})
    assert storage.open(f4.path).problems() == []


def test_columns_that_go_with_their_log_are_no_problem(f4: F4, monkeypatch) -> None:
    f4.writer.close()
    store = storage.open(f4.path)

    def meanwhile(*_: object) -> bool:
        without_log(f4.path)
        without_folder(f4.path)
        return False

    monkeypatch.setattr(problems, "_is_whole", meanwhile)
    assert store.problems() == []
