"""The store that is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.damage import Sound, make_sound


@pytest.fixture
def sound(tmp_path: Path) -> Sound:
    """A sound store of 4 segments of 6 episodes, to be damaged."""
    return make_sound(tmp_path / "store")
