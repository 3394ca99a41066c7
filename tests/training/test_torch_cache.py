from __future__ import annotations

import os
import warnings

import pytest

from training.torch_cache import CacheFolderWarning, ensure_cache_folder

NAME = "TORCHINDUCTOR_CACHE_DIR"


def test_a_folder_that_cannot_be_made_is_left_for_torchs_own(monkeypatch):
    monkeypatch.setenv(NAME, "/dev/null/cache")
    with pytest.warns(CacheFolderWarning, match=r"/dev/null/cache.*\(Not a directory\)"):
        ensure_cache_folder()
    assert NAME not in os.environ


def test_a_folder_that_can_be_written_stays(tmp_path, monkeypatch):
    monkeypatch.setenv(NAME, str(tmp_path / "a" / "b"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ensure_cache_folder()
    assert os.environ[NAME] == str(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_torchs_default_is_not_touched(monkeypatch):
    monkeypatch.delenv(NAME, raising=False)
    ensure_cache_folder()
    assert NAME not in os.environ
