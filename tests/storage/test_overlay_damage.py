"""Overlays whose files are gone, cut, of another kind, or hold what no view stores."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import storage
from pipeline.summary import summarize
from storage.errors import CorruptStoreError
from storage.overlay_segment import OVERLAY_COLUMNS
from tests.storage.zoo import F4


def learnt(f4: F4) -> Path:
    """Fill the overlay main; gives its folder of segment 0."""
    overlay = f4.store.overlay(mode="r+")
    caches = overlay.segment(0, 12)
    for column in OVERLAY_COLUMNS:
        caches.array(column.name)[:] = 1
    overlay.close()
    return f4.path / "overlays/main.zarr/000000"


def without_file(folder: Path) -> None:
    (folder / "value/c.0").unlink()


def without_column(folder: Path) -> None:
    shutil.rmtree(folder / "value")


def empty_file(folder: Path) -> None:
    os.truncate(folder / "value/c.0", 0)


def cut_index(folder: Path) -> None:
    os.truncate(folder / "value/c.0", 100)


def flipped_index(folder: Path) -> None:
    with (folder / "value/c.0").open("r+b") as file:
        file.seek(40)
        file.write(b"\xff")


def pipe(folder: Path) -> None:
    (folder / "value/c.0").unlink()
    os.mkfifo(folder / "value/c.0")


def directory(folder: Path) -> None:
    (folder / "value/c.0").unlink()
    (folder / "value/c.0").mkdir()


def link_to_file(folder: Path) -> None:
    (folder / "value/c.0").rename(folder.parents[2] / "outside")
    (folder / "value/c.0").symlink_to(folder.parents[2] / "outside")


def link_to_column(folder: Path) -> None:
    (folder / "value").rename(folder.parents[2] / "outside")
    (folder / "value").symlink_to(folder.parents[2] / "outside")


def link_to_segment(folder: Path) -> None:
    folder.rename(folder.parents[2] / "outside")
    folder.symlink_to(folder.parents[2] / "outside")


def file_for_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("x")


DAMAGES = (
    without_file,
    without_column,
    empty_file,
    cut_index,
    flipped_index,
    pipe,
    directory,
    link_to_file,
    link_to_column,
    link_to_segment,
    file_for_folder,
)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_read_as_never_set(f4: F4, caplog, damage: Callable[[Path], None]) -> None:
    damage(learnt(f4))
    before = contents(f4.path) if damage is not pipe else None
    store = storage.open(f4.path)
    caches = store.overlay().segment(0, 12)
    for column in OVERLAY_COLUMNS:
        assert caches.array(column.name).tolist() == [0] * 12
    assert caplog.text.count("it reads as never set") == 1
    with store.replay(window=8, scheme="per", private=True) as view:
        assert view.sample(4).sampling_weight.tolist() == [1.0] * 4
    assert summarize(store).overlays[0].far_steps == 0
    assert before in (None, contents(f4.path))


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_set_aside_by_a_writing_view(
    f4: F4, caplog, damage: Callable[[Path], None]
) -> None:
    damage(learnt(f4))
    outside = f4.path / "outside"
    untouched = contents(outside) if outside.is_dir() else outside.exists() and outside.read_bytes()
    with f4.store.replay(window=8, scheme="per") as view:
        batch = view.sample(4)
        view.feed_back(batch, priority_error=np.full(4, 3, np.float32))
    assert caplog.text.count("counts as never set; it was moved to") == 1
    assert os.path.lexists(f4.path / "overlays/main.damaged/000000.0")
    stored = f4.store.overlay().segment(0, 12).array("priority")
    assert set(np.round(stored, 3).tolist()) == {0.0, 1.0, 3.0}
    now = contents(outside) if outside.is_dir() else outside.exists() and outside.read_bytes()
    assert now == untouched
    caplog.clear()
    f4.store.replay(window=8, scheme="per").close()
    assert caplog.text == ""


@pytest.mark.parametrize("name", ["main.zarr", "main.staging"])
def test_links_in_place_of_an_overlays_folders(f4: F4, tmp_path: Path, name: str) -> None:
    learnt(f4)
    outside = tmp_path / "outside"
    (f4.path / "overlays" / name).rename(outside)
    (f4.path / "overlays" / name).symlink_to(outside)
    before = contents(outside)
    with pytest.raises(CorruptStoreError, match=rf"{name} is a symbolic link"):
        f4.store.replay(window=8)
    assert contents(outside) == before


def test_metadata_of_an_overlay_that_is_no_json(f4: F4) -> None:
    learnt(f4)
    file = f4.path / "overlays/main.zarr/zarr.json"
    for text in (b"[" * 100_000, b"{}", b"\xff", b'{"attributes": {"store_uuid": "other"}}'):
        file.write_bytes(text)
        for mode in ("r", "r+"):
            with pytest.raises(ValueError, match="name another overlay"):
                f4.store.overlay(mode=mode)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(CorruptStoreError, match="named pipe"):
        f4.store.overlay()


BAD = {
    "priority": [np.nan, np.inf, -1.0],
    "importance_ratio": [np.nan, np.inf, -0.5],
    "divergence": [-np.inf, np.nan, -2.0],
    "value": [np.nan, np.inf, -np.inf],
    "value_target": [np.nan, np.inf, -np.inf],
    "far": [2, 255, 7],
}


@pytest.mark.parametrize("column", BAD)
@pytest.mark.parametrize("private", [False, True])
def test_values_that_no_view_stores_are_reset_and_named(
    f4: F4, caplog, column: str, private: bool
) -> None:
    overlay = f4.store.overlay(mode="r+")
    caches = overlay.segment(0, 12)
    caches.array("priority")[:] = 2
    caches.array("importance_ratio")[:] = 1
    caches.array(column)[1:4] = BAD[column]
    overlay.close()
    for file in (f4.path / "overlays").rglob("checksum.json"):
        file.unlink()  # as after a kill
    with f4.store.replay(window=9, scheme="per", private=private) as view:
        assert "3 rows of segment 000000 (row 1, 2, 3) hold what no view stores" in caplog.text
        batch = view.sample(64) if view.n_steps >= 64 else view.sample(9)
        assert np.isfinite(batch.sampling_weight).all()
        assert np.isfinite(batch.value_target).all()
        rows = np.arange(5)
        read = {name: view.read(name, np.zeros(5, np.int64), rows) for name in BAD}
    assert all(np.isfinite(values).all() for values in read.values())
    assert read["priority"].tolist() == [2.0] * 5  # the largest one, as new steps get
    assert read["importance_ratio"].tolist() == [1.0] * 5
    stored = f4.store.overlay().segment(0, 12).array(column)
    assert np.isfinite(stored).all()
    if not private:
        caplog.clear()
        f4.store.replay(window=9, scheme="per").close()
        assert caplog.text == ""


def test_a_priority_of_minus_zero_is_sound(f4: F4, caplog) -> None:
    """It says that the step's priority is 0, where 0.0 says that it has none."""
    overlay = f4.store.overlay(mode="r+")
    overlay.segment(0, 12).array("priority")[:] = -0.0
    overlay.close()
    stored = f4.store.overlay().segment(0, 12).array("priority")
    assert np.signbit(stored).all()
    assert caplog.text == ""


def test_an_overlay_that_grows_while_it_is_read(f4: F4) -> None:
    overlay = f4.store.overlay(mode="r+")
    overlay.segment(0, 12).array("priority")[2] = np.nan
    overlay.segment(0, 12).array("priority")[3] = 4
    reader = f4.store.overlay()
    assert reader.segment(0, 12).array("priority")[:4].tolist() == [0, 0, 0, 4]
    overlay.segment(0, 5000).array("priority")[4999] = 5
    grown = reader.segment(0, 5000).array("priority")
    assert grown[[2, 3, 4999]].tolist() == [0, 4, 5]
