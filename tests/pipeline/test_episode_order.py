"""The order of episodes where clocks differ or were set back."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import storage
from pipeline.episode_order import in_order_of_end, merge_lanes
from pipeline.learning_curve import read_learning_curve
from pipeline.summary import summarize
from storage.log_record import RECORD
from storage.retention import drop
from tests.storage.zoo import play, tiny_spec


def records(ends: list[int], returns: list[float]) -> np.ndarray:
    made = np.zeros(len(ends), RECORD)
    made["end_time"], made["return"] = ends, returns
    return made


def test_a_lane_keeps_its_order_when_its_clock_is_set_back() -> None:
    first = [records([10, 40], [0, 1]), records([20, 25, 60], [2, 3, 4])]
    second = [records([30, 50], [5, 6])]
    merged = merge_lanes([first, second])["return"].tolist()
    assert merged == [0, 5, 1, 2, 3, 6, 4]
    assert len(merge_lanes([])) == len(merge_lanes([[], [records([], [])]])) == 0


def test_a_clock_set_back_leaves_curve_and_last_20_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day back after the 30th of 50 episodes; the first segments are dropped."""
    now, shift = time.time_ns, [0]
    monkeypatch.setattr("storage.lane.time.time_ns", lambda: now() - shift[0])
    made = storage.create(tmp_path / "store", tiny_spec())
    with made.writer(run="own", row_budget=10, capacity=256, seal=True) as writer:
        expected = []
        for episode in range(50):
            shift[0] = 86_400 * 10**9 if episode >= 30 else 0
            expected.append(play(writer, 0, episode).episode_return)
    drop(made, [0, 1])
    assert in_order_of_end(made)["return"].tolist() == expected
    assert len(in_order_of_end(made, "another")) == 0
    returns = summarize(made).returns
    made.close()
    assert returns is not None
    assert returns.last_20_mean == pytest.approx(np.mean(expected[-20:]))
    assert read_learning_curve(tmp_path).returns.tolist() == expected
