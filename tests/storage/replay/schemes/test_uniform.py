"""Uniform draws: every step equally often, none twice in a batch, in no particular order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.randomness import stream_key
from storage.replay.schemes.uniform import draw_distinct


def draw(count: int, size: int, index: int, seed: int = 0, first: int = 0) -> np.ndarray:
    chosen = np.empty(size, np.int64)
    draw_distinct(np.array(stream_key(seed, "test"), np.uint64), index, chosen, first, count)
    return chosen


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_repeats_and_always_in_range(data) -> None:
    size = data.draw(st.integers(1, 300))
    count = data.draw(st.integers(size, 4 * size + 10))
    first = data.draw(st.integers(0, 2**40))
    chosen = draw(count, size, data.draw(st.integers(0, 2**40)), first=first)
    assert len(set(chosen.tolist())) == size
    assert first <= chosen.min() <= chosen.max() < first + count


@pytest.mark.parametrize(("count", "size"), [(9, 1), (9, 5), (40, 40), (100, 7)])
def test_each_place_of_a_batch_is_uniform(count: int, size: int) -> None:
    """Chi-square of every place: Floyd's sets alone would never put the last numbers first."""
    rounds = 400 * count
    draws = np.array([draw(count, size, index) for index in range(rounds)])
    for place in {0, size // 2, size - 1}:
        counts = np.bincount(draws[:, place], minlength=count)
        chi_square = np.sum((counts - rounds / count) ** 2) / (rounds / count)
        assert chi_square < count - 1 + 5 * np.sqrt(2 * (count - 1))


def test_pairs_are_independent() -> None:
    draws = np.array([draw(5, 2, index) for index in range(20_000)])
    counts = np.bincount(draws[:, 0] * 5 + draws[:, 1], minlength=25).reshape(5, 5)
    assert np.diag(counts).sum() == 0
    off = counts[~np.eye(5, dtype=bool)]
    assert np.sum((off - 1000) ** 2) / 1000 < 19 + 5 * np.sqrt(38)


def test_a_draw_is_a_function_of_seed_and_index() -> None:
    assert draw(1000, 32, 5).tolist() == draw(1000, 32, 5).tolist()
    assert draw(1000, 32, 5).tolist() != draw(1000, 32, 6).tolist()
    assert draw(1000, 32, 5).tolist() != draw(1000, 32, 5, seed=1).tolist()
