"""The table of Theorem 1, as the reference prints it."""

from __future__ import annotations

import pytest

from training.cliffwalk.theorem import (
    expected_per,
    expected_per_error_before,
    expected_pser,
    expected_uniform,
)

TABLE = """
2 9.000000 4.000000 2.000000 2.000000 2.000000 2.000000
3 24.500000 11.500000 3.400000 3.650000 3.800000 3.900000
4 56.250000 27.250000 4.960000 5.722500 6.240000 6.610000
5 120.125000 59.125000 6.584000 8.069625 9.192000 10.049000
6 248.062500 123.062500 8.233600 10.595256 12.553600 14.144100
7 504.031250 251.031250 9.893440 13.236917 16.242880 18.829690
8 1016.015625 507.015625 11.557376 15.953996 20.194304 24.046721
9 2040.007812 1019.007812 13.222950 18.720097 24.355443 29.742049
10 4088.003906 2043.003906 14.889180 21.518063 28.684355 35.867844
11 8184.001953 4091.001953 16.555672 24.336741 33.147484 42.381060
12 16376.000977 8187.000977 18.222269 27.168882 37.717987 49.242954
13 32760.000488 16379.000488 19.888908 30.009773 42.374390 56.418658
14 65528.000244 32763.000244 21.555563 32.856353 47.099512 63.876792
15 131064.000122 65531.000122 23.222225 35.706629 51.879609 71.589113
16 262136.000061 131067.000061 24.888890 38.559309 56.703687 79.530202
"""
ROWS = [[float(word) for word in line.split()] for line in TABLE.strip().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"n={row[0]:.0f}")
def test_closed_forms(row: list[float]) -> None:
    n = int(row[0])
    found = [expected_uniform(n), expected_per(n)]
    found += [expected_pser(n, decay) for decay in (0.4, 0.65, 0.8, 0.9)]
    assert found == pytest.approx(row[1:], rel=0, abs=1e-6)


@pytest.mark.parametrize(("n", "steps"), [(8, 11.5328), (16, 24.7296)])
def test_closed_form_with_a_window(n: int, steps: float) -> None:
    assert expected_pser(n, 0.4, 5) == pytest.approx(steps, abs=1e-10)


@pytest.mark.parametrize("n", [2, 8, 16])
def test_a_window_that_reaches_everywhere_changes_nothing(n: int) -> None:
    assert expected_pser(n, 0.8, n) == expected_pser(n, 0.8)


@pytest.mark.parametrize(("n", "steps"), [(3, 13.5), (4, 30.25)])
def test_the_error_before_the_update_costs_a_draw_a_state(n: int, steps: float) -> None:
    assert expected_per_error_before(n) == steps
