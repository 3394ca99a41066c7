from __future__ import annotations

import json
from pathlib import Path

import pytest
from gymnasium import spaces

import storage
from storage.errors import (
    ConfigError,
    CorruptStoreError,
    FormatVersionError,
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
        spec(SPACES["dict"], SPACES["tuple"], kwargs={"a": 1}, max_episode_steps=99),
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
