"""Fixtures that several parts' tests share."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.zoo import F4, make_f4


@pytest.fixture
def f4(tmp_path: Path) -> Iterator[F4]:
    """Episodes A (5 steps, terminated), B (3, truncated), C (1, terminated), D (4, still open)."""
    made = make_f4(tmp_path / "f4")
    yield made
    made.writer.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of 8 MiB; skips, saying why, where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command, so no small disk can be made to fill up")
    if mounted.returncode:
        pytest.skip(f"mounting a small disk is not allowed here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
