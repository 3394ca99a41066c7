from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from gymnasium import spaces

import storage
from storage.errors import (
    ConfigError,
    CorruptStoreError,
    FormatVersionError,
    ReadOnlyStoreError,
    StoreExistsError,
    StoreNotFoundError,
    UnsupportedSpaceError,
)
from tests.storage.zoo import F4, SPACES, f4_spec, spec


def test_create_refuses_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    storage.create(tmp_path / "empty", f4_spec())
    with pytest.raises(StoreExistsError, match=r"mode='r\+'"):
        storage.create(tmp_path / "empty", f4_spec())
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreExistsError):
        storage.create(tmp_path / "file", f4_spec())
    storage.create(tmp_path / "deep" / "er" / "store", f4_spec())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "empty", "file"]


def test_unsupported_spaces_are_refused_at_creation(tmp_path: Path) -> None:
    """Minari: space type cannot be serialised."""
    with pytest.raises(UnsupportedSpaceError, match=r"Text.*observation\.note"):
        storage.create(
            tmp_path / "store",
            spec(spaces.Dict({"note": spaces.Text(5)}), spaces.Discrete(2)),
        )
    assert not (tmp_path / "store").exists()


def test_paths_that_are_no_store(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for name in ("folder", "file", "nothing"):
        with pytest.raises(StoreNotFoundError, match="is no Sharpwave store"):
            storage.open(tmp_path / name)
    with pytest.raises(ConfigError, match="mode 'w'"):
        storage.open(tmp_path / "nothing", mode="w")


def test_a_newer_format_is_refused(f4: F4) -> None:
    root = f4.path / "steps.zarr" / "zarr.json"
    document = json.loads(root.read_text())
    document["attributes"]["format_version"] = 2
    root.write_text(json.dumps(document))
    with pytest.raises(FormatVersionError, match="version 2; this release reads up to 1"):
        storage.open(f4.path)


def test_metadata_of_something_else_is_named(f4: F4) -> None:
    root = f4.path / "steps.zarr" / "zarr.json"
    for text in ("{", "[]", '{"attributes": {}}'):
        root.write_text(text)
        with pytest.raises(CorruptStoreError, match=r"zarr\.json"):
            storage.open(f4.path)


def test_schema_and_environment_are_remembered(tmp_path: Path) -> None:
    made = storage.create(
        tmp_path / "store",
        spec(SPACES["stacks"], SPACES["tuple"], kwargs={"a": 1}, max_episode_steps=99),
        info={"x": "f4"},
        frame_stack=4,
        first_stack_padding="repeat",
        life_loss=True,
    )
    again = storage.open(tmp_path / "store")
    assert (again.uuid, again.schema, again.env_spec) == (made.uuid, made.schema, made.env_spec)


def test_a_store_without_its_logs_is_no_empty_store(f4: F4) -> None:
    f4.writer.close()
    (f4.path / "log").rename(f4.path / "gone")
    with pytest.raises(CorruptStoreError, match="no folder log"):
        storage.open(f4.path)


EMPTY = ("staging", "locks", "orphans", "quarantine", "overlays", "episodes")


def test_empty_folders_that_a_copy_lost_come_back(f4: F4) -> None:
    f4.writer.close()
    for name in EMPTY:
        shutil.rmtree(f4.path / name)
    assert storage.open(f4.path).n_episodes == 4
    assert not (f4.path / "locks").exists()
    with storage.open(f4.path, mode="r+").writer() as writer:
        writer.begin(0, [0.0])
        step = {"action": 0, "reward": 0.0, "observation": [1.0], "truncated": False}
        record = writer.step(0, terminated=True, **step)
    assert record is not None
    assert record.segment == 1
    assert all((f4.path / name).is_dir() for name in EMPTY)


def test_an_empty_store_needs_no_log_folder(tmp_path: Path) -> None:
    storage.create(tmp_path / "store", f4_spec())
    for folder in (tmp_path / "store").iterdir():
        if folder.name != "steps.zarr":
            shutil.rmtree(folder)
    assert storage.open(tmp_path / "store").n_episodes == 0
    with storage.open(tmp_path / "store", mode="r+").writer() as writer:
        writer.begin(0, [0.0])


def test_stray_files_are_ignored(f4: F4) -> None:
    f4.writer.close()
    for name in ("log/foo.log", "log/000000 (copy).log", "log/7.log", "log/\u00b2.log"):
        (f4.path / name).write_text("stray")
    for name in ("steps.zarr/README", "steps.zarr/12", "overlays/note.zarr", "staging/\u00b2"):
        (f4.path / name).write_text("stray")
    store = storage.open(f4.path, mode="r+")
    assert (store.n_episodes, store.problems()) == (4, [])
    with store.writer() as writer:
        writer.begin(0, [0.0])
        opened = writer.open_episode(0)
    assert opened is not None
    assert opened.segment == 1


def test_places_where_no_store_can_be_made(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)
    for path in ("", "."):
        with pytest.raises(ConfigError, match="a folder of its own"):
            storage.create(path, f4_spec())
    with pytest.raises(ConfigError, match="part of this path is a file"):
        storage.create(tmp_path / "file" / "store", f4_spec())
    with pytest.raises(ReadOnlyStoreError, match="cannot create a store at /proc/store"):
        storage.create("/proc/store", f4_spec())


@pytest.mark.parametrize("version", ["2", None, 1.5, True, 0])
def test_a_version_that_is_none(f4: F4, version: object) -> None:
    root = f4.path / "steps.zarr" / "zarr.json"
    document = json.loads(root.read_text())
    document["attributes"]["format_version"] = version
    root.write_text(json.dumps(document))
    with pytest.raises(FormatVersionError, match=r"zarr\.json gives the format version as"):
        storage.open(f4.path)


@pytest.mark.parametrize("key", ["environment", "schema", "store_uuid"])
@pytest.mark.parametrize("value", [None, 3, {}])
def test_attributes_that_are_missing_or_wrong(f4: F4, key: str, value: object) -> None:
    root = f4.path / "steps.zarr" / "zarr.json"
    document = json.loads(root.read_text())
    if value is None:
        del document["attributes"][key]
    else:
        document["attributes"][key] = value
    root.write_text(json.dumps(document))
    with pytest.raises(CorruptStoreError, match=r"zarr\.json.*[Rr]estore"):
        storage.open(f4.path)
