from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.protocol.bins import TrainingReturns, binned


def run(lengths: list[int], returns: list[float], warmup: int = 10) -> TrainingReturns:
    return TrainingReturns(
        np.cumsum(lengths, dtype=np.int64), np.array(returns, dtype=np.float64), warmup
    )


def test_bins_begin_behind_the_warm_up() -> None:
    # Entries at steps 4, 10 | 11, 20, 30 | 31.
    found = binned([run([4, 6, 1, 9, 10, 1], [1, 3, 5, 7, 12, 100])], 20)
    assert [each.number for each in found] == [0, 1, 2]
    assert [each.mean for each in found] == [2.0, 8.0, 100.0]
    assert [each.episodes for each in found] == [2, 3, 1]
    assert [(each.first, each.last) for each in found] == [(1, 10), (1, 20), (21, 40)]
    counted = [(each.first_with_warmup, each.last_with_warmup) for each in found]
    assert counted == [(1, 10), (11, 30), (31, 50)]
    assert [each.complete for each in found] == [True, True, False]


def test_the_mean_is_over_runs_and_the_band_between_them() -> None:
    # One run has two episodes in the bin: each run counts once.
    runs = [run([10, 5], [0, value]) for value in (1.0, 2.0, 3.0, 4.0)]
    runs.append(run([10, 2, 3], [0, 0, 10]))
    (_, first) = binned(runs, 5)
    assert first.means == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert first.mean == 3.0
    assert first.band == pytest.approx((1.8, 4.2))  # a fifth of the way from 1 to 5, and back
    assert (first.runs, first.episodes, first.complete) == (5, 6, True)


def test_a_run_without_an_episode_in_a_bin() -> None:
    runs = [run([20, 10, 10], [1, 2, 3], 0), run([20], [5], 0), run([], [], 0)]
    first, second = binned(runs, 20)
    assert (first.mean, first.runs) == (3.0, 2)
    assert math.isnan(first.means[2])
    assert (second.mean, second.runs, second.complete) == (2.5, 1, False)
    assert second.band == (2.5, 2.5)


def test_episodes_that_were_cut_off_count_their_steps_only() -> None:
    first, second = binned([run([3, 4, 3, 6], [1, math.nan, 3, math.nan], 0)], 10)
    assert (first.mean, first.episodes, first.complete) == (2.0, 2, True)
    assert (second.runs, second.episodes) == (0, 0)
    assert math.isnan(second.mean)
    assert all(math.isnan(value) for value in second.band)


def test_without_a_warm_up_there_is_no_bin_of_it() -> None:
    assert [each.number for each in binned([run([5], [1], 0)], 4)] == [1, 2]
    assert binned([run([], [], 0)], 4) == []
    (only,) = binned([run([3], [1], 10)], 4)
    assert (only.number, only.mean, only.complete) == (0, 1.0, False)


episodes = st.lists(st.tuples(st.integers(1, 9), st.integers(-9, 9)), max_size=20)


@given(st.lists(episodes, min_size=1, max_size=4), st.integers(0, 15), st.integers(1, 20))
def test_against_a_naive_count(lives: list[list[tuple[int, int]]], warmup: int, size: int) -> None:
    runs = [run([n for n, _ in life], [r for _, r in life], warmup) for life in lives]
    for each in binned(runs, size):
        low, high = each.first_with_warmup, each.last_with_warmup
        own: list[list[int]] = []
        for life in lives:
            step, inside = 0, []
            for length, value in life:
                step += length
                inside += [value] if low <= step <= high else []
            own.append(inside)
        assert each.episodes == sum(map(len, own))
        means = [sum(inside) / len(inside) for inside in own if inside]
        assert each.runs == len(means)
        if means:
            assert each.mean == pytest.approx(sum(means) / len(means))
        assert each.complete == all(sum(n for n, _ in life) >= high for life in lives)
    assert sum(each.episodes for each in binned(runs, size)) == sum(map(len, lives))
