from __future__ import annotations

import numpy as np
import pytest

from storage.errors import ConfigError
from storage.kernel import Integers
from training.cliffwalk.idealised import simulate_per, simulate_pser, simulate_uniform
from training.cliffwalk.theorem import (
    expected_per,
    expected_per_error_before,
    expected_pser,
    expected_uniform,
)

REPEATS = 4000


def assert_mean(draws: Integers, expected: float) -> None:
    """Within 3 standard errors; a process without chance is exact."""
    deviation = draws.std(ddof=1) / np.sqrt(draws.size)
    assert abs(draws.mean() - expected) <= 3 * deviation


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8, 10])
def test_uniform_and_per(n: int) -> None:
    assert_mean(simulate_uniform(n, REPEATS, 1), expected_uniform(n))
    assert_mean(simulate_per(n, REPEATS, 1), expected_per(n))
    before = simulate_per(n, REPEATS, 1, error_before=True)
    assert_mean(before, expected_per_error_before(n))


@pytest.mark.parametrize("decay", [0.4, 0.65, 0.8, 0.9])
@pytest.mark.parametrize("n", [2, 4, 8, 10, 16])
def test_pser(n: int, decay: float) -> None:
    assert_mean(simulate_pser(n, decay, REPEATS, 1), expected_pser(n, decay))


@pytest.mark.parametrize("window", [1, 2, 5])
def test_pser_with_a_window(window: int) -> None:
    draws = simulate_pser(12, 0.65, REPEATS, 1, window=window)
    assert_mean(draws, expected_pser(12, 0.65, window))


def test_where_only_the_nearest_is_reached_every_draw_is_of_use() -> None:
    assert simulate_pser(9, 0.4, 5, 0, window=1).tolist() == [9] * 5


def test_no_process_needs_fewer_draws_than_states() -> None:
    for draws in (simulate_uniform(5, 500, 2), simulate_per(5, 500, 2)):
        assert draws.min() >= 5
    assert simulate_per(5, 500, 2, error_before=True).min() >= 9


def test_streams_depend_on_the_seed_alone() -> None:
    assert np.array_equal(simulate_pser(8, 0.4, 50, 7), simulate_pser(8, 0.4, 50, 7))
    assert not np.array_equal(simulate_pser(8, 0.4, 50, 7), simulate_pser(8, 0.4, 50, 8))
    assert not np.array_equal(simulate_uniform(8, 50, 7), simulate_per(8, 50, 7))


@pytest.mark.parametrize(("decay", "window"), [(0.4, 0), (0.0, None), (-0.1, 5)])
def test_a_sequence_that_passes_nothing_on_is_refused(decay: float, window: int | None) -> None:
    with pytest.raises(ConfigError, match="the draws would never end"):
        simulate_pser(4, decay, 1, 0, window=window)
