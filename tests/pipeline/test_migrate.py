from __future__ import annotations

import os
from pathlib import Path

import pytest

import storage
from pipeline.cli import main
from tests.storage.made_up_version import to_version_0
from tests.storage.zoo import f4_spec


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return storage.create(tmp_path / "store", f4_spec()).path


def test_a_store_of_this_release_has_nothing_to_migrate(store: Path, capsys) -> None:
    assert main(["migrate", str(store)]) == 0
    assert capsys.readouterr().out == f"{store} is of format version 1 already; nothing to do\n"
    assert os.listdir(store.parent) == ["store"]


def test_where_nothing_is_to_do_nothing_is_written(store: Path) -> None:
    """A lock file beside the store needs a folder that may be written."""
    os.utime(store.parent, ns=(0, 0))
    assert main(["migrate", str(store)]) == 0
    assert store.parent.stat().st_mtime_ns == 0


def test_what_cannot_be_migrated_is_told_in_one_line(store: Path, tmp_path: Path, capsys) -> None:
    to_version_0(store)
    for path, words in ((store, "no way from 0 to 1"), (tmp_path / "none", "no Sharpwave store")):
        assert main(["migrate", str(path)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert words in said.err
        assert said.err.count("\n") == 1
