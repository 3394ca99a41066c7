"""The command line as a user starts it: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def sharpwave(tmp_path: Path) -> Command:
    """Runs `sharpwave …` in `tmp_path`, without a terminal, and gives the finished process."""

    def run(*words: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "pipeline.cli", *map(str, words)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
