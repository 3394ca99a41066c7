"""Real stores for the replay tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.storage.replay.filler import Filler


@pytest.fixture
def filler(tmp_path: Path) -> Any:
    """Makes fillers; closes them."""
    made: list[Filler] = []

    def make(**options: Any) -> Filler:
        made.append(Filler(tmp_path / f"store{len(made)}", **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def four(filler: Callable[..., Filler]) -> Filler:
    """Episodes A (5, terminated), B (3, truncated), C (1, terminated) and D (4, open)."""
    made = filler()
    made.episode(5, True, 0.0, 1.0)
    made.episode(3, False, 100.0, 1.0)
    made.episode(1, True, 200.0, 1.0)
    made.writer.begin(0, np.array([300.0]))
    for t in range(4):
        made.writer.step(
            0,
            action=np.zeros(2, np.float32),
            reward=1.0,
            observation=np.array([301.0 + t]),
            terminated=False,
            truncated=False,
        )
    return made
