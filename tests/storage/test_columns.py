from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import storage
from tests.storage.zoo import play, spec, tiny_spec


def test_store_dtypes_are_the_spaces_own(tmp_path: Path) -> None:
    """stable-baselines3, tianshou: float64 everywhere."""
    store = storage.create(
        tmp_path / "store",
        spec(spaces.Box(0, 255, (8, 8), np.uint8), spaces.Box(-1, 1, (2,), np.float64)),
    )
    assert store.columns["observation"].dtype == np.uint8
    assert store.columns["action"].dtype == np.float64
    assert store.schema.row_bytes < 8 * 8 + 2 * 8 + 80


def test_columns_run_over_all_segments(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(lanes=2, row_budget=20) as writer:
        for episode in range(12):
            for lane in range(2):
                play(writer, lane, episode)
    reward = store.columns["reward"]
    parts = [store.segment(info.id).array("reward") for info in store.segments]
    whole = np.concatenate(parts)
    assert len(parts) > 4
    assert len(reward) == len(whole) == store.n_rows
    for key in (slice(None), slice(5, 60), slice(-7, None), slice(3, 50, 7), slice(9, 2)):
        np.testing.assert_array_equal(reward[key], whole[key])
    assert reward[-1] == whole[-1]
    with pytest.raises(IndexError, match="which has"):
        reward[len(whole)]
    assert list(store.columns) == [column.name for column in store.schema.columns]
    assert store.n_steps == int((store.columns["kind"][:] == 1).sum())
