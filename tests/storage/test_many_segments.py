"""Thousands of segments need neither many descriptors nor most of the maps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("segments", "files"), [(150, 32), pytest.param(3000, 256, marks=pytest.mark.soak)]
)
def test_many_segments_under_few_descriptors(tmp_path: Path, segments: int, files: int) -> None:
    words = ["-m", "tests.storage.many_segments", str(tmp_path / "store")]
    done = subprocess.run(
        [sys.executable, *words, str(segments), str(files)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("MARK")]
    most, limit = (int(word) for word in line.split()[1:])
    assert most < limit // 2
