from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import storage
from bench.opening import SHAPES, make_store


@pytest.mark.parametrize(("episodes", "segments"), [(1, 1), (1000, 1), (1000, 7)])
def test_a_made_store_is_a_store(tmp_path: Path, episodes: int, segments: int) -> None:
    make_store(tmp_path / "store", episodes, segments)
    with storage.open(tmp_path / "store") as store:
        assert store.problems() == []
        assert (store.n_episodes, store.n_steps) == (episodes, episodes)
        assert len(store.segments) == segments
        assert all(each.sealed for each in store.segments)
        np.testing.assert_array_equal(store.columns["reward"][:], np.zeros(2 * episodes))


def test_both_shapes_of_a_million_episodes_are_measured() -> None:
    assert {episodes for episodes, _ in SHAPES} == {100_000, 1_000_000}
    assert max(segments for _, segments in SHAPES) >= 3_000
