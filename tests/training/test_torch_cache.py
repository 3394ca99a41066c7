from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

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


def test_a_run_trains_where_the_folder_asked_for_cannot_be_made(tmp_path):
    """Lightning itself cannot be imported there, whatever the engine."""
    script = (
        "import sys\nfrom pipeline.cli import main\n"
        "sys.exit(main(['train', '--environment.id=tests.training.zoo.Drift', '--loop.steps=48',"
        "'--loop.warmup=32', '--loop.round_steps=16', '--agent.batch_size=16', '--runs='"
        " + sys.argv[1], '--evaluation.episodes=0']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        env=os.environ | {NAME: "/dev/null/cache"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "48 steps and 16 updates" in done.stdout
    warned = [line for line in done.stderr.splitlines() if "Warning" in line]
    assert len(warned) == 1
    assert "/dev/null/cache, which cannot be written (Not a directory)" in warned[0]
