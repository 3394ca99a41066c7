"""A folder, or nothing, where a file belongs: verify names it, and repair derives the file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import storage
from storage.file_lock import FileLock
from tests.storage.damage import Sound, make_sound, tree
from tests.storage.zoo import play


def derived() -> list[str]:
    """A file of each kind that can be derived, and each kind of lock file."""
    return [
        "steps.zarr/zarr.json",
        "steps.zarr/000000/zarr.json",
        "steps.zarr/000000/observation/zarr.json",
        "steps.zarr/000001/kind/zarr.json",
        "episodes/000000.arrow",
        "log/store.json",
        "overlays/main.zarr/zarr.json",
        "overlays/main.zarr/000000/zarr.json",
        "overlays/main.zarr/000000/value/zarr.json",
        "overlays/main.zarr/000000/value/c.0",
    ]


MISPLACED = [
    *derived(),
    "log/000003.open",
    "overlays/main.zarr/000000/value/checksum.json",
    "locks/000000.lock",
    "locks/000003.lock",
    "locks/repair.lock",
    "locks/seed-7.lock",
    "overlays/main.lock",
]


def require_mended(sound: Sound) -> None:
    """All agree: what verify names is what a dry run plans, and what a repair does, once."""
    before = tree(sound.path)
    planned = storage.repair(sound.path, dry_run=True)
    assert planned.actions
    assert tree(sound.path) == before
    done = storage.repair(sound.path)
    assert done.actions == planned.actions
    assert done.episodes_lost == 0
    report = storage.verify(sound.path)
    assert report.errors == report.warnings == ()
    assert storage.repair(sound.path).actions == ()
    assert sound.readable() == set(sound.episodes)
    with storage.open(sound.path, mode="r+") as store:
        with store.writer() as writer:
            play(writer, 0, 50)
        store.replay(64, scheme="per").close()
    assert os.listdir(sound.paths.staging) == []


@pytest.mark.parametrize("name", MISPLACED)
def test_a_folder_in_place_of_a_file_is_named_and_moved(sound: Sound, name: str) -> None:
    place = sound.path / name
    place.unlink(missing_ok=True)
    place.mkdir()
    (place / "mine").write_text("a file of somebody's")
    found = [each for each in storage.verify(sound.path).findings if each.severity != "note"]
    assert name in {each.file for each in found} | {
        each.file.replace("c.0", "checksum.json") for each in found
    }
    assert any("folder" in each.what or "checksum.json" in each.what for each in found)
    require_mended(sound)
    kept = list((sound.path / "quarantine").rglob("mine"))
    assert [each.read_text() for each in kept] == ["a file of somebody's"]


@pytest.mark.parametrize("name", derived())
def test_a_lost_file_is_named_and_derived_again(sound: Sound, name: str) -> None:
    before = (sound.path / name).read_bytes()
    (sound.path / name).unlink()
    found = [each for each in storage.verify(sound.path).findings if each.severity != "note"]
    assert name in {each.file for each in found}
    require_mended(sound)
    if not name.startswith("overlays/main.zarr/0"):  # caches are begun anew
        assert (sound.path / name).read_bytes() == before


def test_a_folder_in_place_of_a_log_takes_the_segment_out(sound: Sound) -> None:
    log = sound.paths.log(1)
    log.unlink()
    log.mkdir()
    (error,) = storage.verify(sound.path).errors
    assert (error.kind, error.file) == ("log-unreadable", "log/000001.log")
    assert error.what == "it cannot be read: it is a folder"
    planned = storage.repair(sound.path, dry_run=True)
    assert storage.repair(sound.path).actions == planned.actions
    assert sound.readable() == {each for each in sound.episodes if each[0] != 1}
    assert storage.verify(sound.path).sound


def test_a_lost_table_is_derived_by_the_next_writer(sound: Sound) -> None:
    tables = {segment: sound.paths.episode_table(segment) for segment in (0, 3)}
    before = {segment: table.read_bytes() for segment, table in tables.items()}
    for table in tables.values():
        table.unlink()
    assert [each.what for each in storage.verify(sound.path).errors] == ["it is missing"] * 2
    with storage.open(sound.path, mode="r+").writer() as writer:
        play(writer, 0, 50)
    assert {segment: table.read_bytes() for segment, table in tables.items()} == before
    assert storage.verify(sound.path).sound


def test_a_table_comes_before_the_rows_that_it_tells_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that is killed while it publishes leaves nothing that looks lost."""
    from storage import segment_writer

    sound = make_sound(tmp_path / "store")
    monkeypatch.setattr(segment_writer, "publish_arrays", lambda *_: None)
    with storage.open(sound.path, mode="r+").writer() as writer:
        play(writer, 0, 50)
    assert sound.paths.episode_table(4).exists()
    monkeypatch.undo()
    monkeypatch.setattr(segment_writer, "write_episode_table", _killed)
    writer = storage.open(sound.path, mode="r+").writer(publish_interval=0)
    with pytest.raises(ZeroDivisionError):
        play(writer, 0, 51)
    monkeypatch.undo()
    for lane in writer._lanes:
        lane.segment.release()
    assert storage.verify(sound.path).errors == ()


def _killed(*_: object) -> None:
    raise ZeroDivisionError


def test_a_segment_whose_lock_is_a_folder_can_be_read_and_its_id_stays_taken(sound: Sound) -> None:
    lock = sound.paths.lock(3)
    lock.unlink()
    lock.mkdir()
    assert sound.readable() == set(sound.episodes)
    storage.repair(sound.path)
    assert lock.read_bytes() == b"", "which vouches for nothing"
    shutil.rmtree(sound.paths.segment(3))
    sound.paths.log(3).unlink()
    FileLock(lock).release()
    with storage.open(sound.path, mode="r+").writer() as writer:
        assert play(writer, 0, 50).segment == 4


def test_an_overlay_without_checksums_is_noted(sound: Sound) -> None:
    """Nothing its rows could be compared with: that is said, and is no fault."""
    overlay = sound.path / "overlays/main.zarr"
    (overlay / "000001/value/checksum.json").unlink()
    for file in (overlay / "000002").rglob("checksum.json"):
        file.unlink()
    report = storage.verify(sound.path)
    assert report.errors == report.warnings == ()
    told = {each.file: each.what for each in report.notes if each.kind == "overlay-unchecked"}
    assert told == {
        "overlays/main.zarr/000001": (
            "no checksum.json, so that its rows were not compared (value)"
        ),
        "overlays/main.zarr/000002": (
            "no checksum.json, so that its rows were not compared (8 of 8 columns)"
        ),
    }
    with storage.open(sound.path, mode="r+") as store, store.replay(64, scheme="per"):
        assert storage.verify(sound.path).findings == (), "a view writes it just now"


def test_a_lost_note_is_told_where_an_episode_is_open(tmp_path: Path) -> None:
    from tests.storage.test_salvage import die
    from tests.storage.zoo import make_f4

    f4 = make_f4(tmp_path / "store")
    die(f4.writer)
    note = f4.path / "log/000000.open"
    note.unlink()
    (warning,) = storage.verify(f4.path).warnings
    assert (warning.kind, warning.what) == ("open-note", "it is missing")
    storage.repair(f4.path)
    assert note.read_bytes() == bytes(52)
    assert storage.verify(f4.path).warnings == ()
