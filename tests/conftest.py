"""Fixtures that several parts' tests share."""

from __future__ import annotations

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
