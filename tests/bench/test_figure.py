from __future__ import annotations

import pytest

from bench.figure import Cell, Figure, Point, Spread


def test_a_spread_is_the_quartiles() -> None:
    assert Spread.of([5.0, 1.0, 4.0, 2.0, 3.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)


def test_a_time_s_ratio_is_how_many_times_the_limit_it_takes() -> None:
    figure = Figure.of("append", "µs", [6.0, 6.0], [2.0, 2.0], "arrays")
    assert figure.ratio.median == 3.0
    assert (figure.value.median, figure.limit.median, figure.repeats) == (6.0, 2.0, 2)


def test_a_rate_s_ratio_is_a_cost_as_well() -> None:
    assert Figure.of("collect", "steps/s", [50.0], [100.0], "bare").ratio.median == 2.0


def test_the_ratio_is_of_pairs_so_that_a_slow_machine_moves_nothing() -> None:
    values, limits = [2.0, 20.0, 2.0, 40.0], [1.0, 10.0, 1.0, 20.0]
    figure = Figure.of("update", "µs", values, limits, "products")
    assert figure.ratio == Spread(2.0, 2.0, 2.0)
    assert figure.value.p75 > 2 * figure.value.p25


@pytest.mark.parametrize(("values", "limits"), [([], []), ([1.0], [1.0, 2.0])])
def test_values_without_their_limits_are_refused(values: list[float], limits: list[float]) -> None:
    with pytest.raises(ValueError, match=f"odd: {len(values)} values for {len(limits)} limits"):
        Figure.of("odd", "µs", values, limits, "limit")


def test_a_line_is_flat_and_has_everything() -> None:
    point = Point("update against batch", "fused", 64)
    figure = Figure.of("u", "µs", [3.0], [2.0], "p", target=1.6, place=point, details={"k": 1})
    assert figure.line() == {
        "name": "u",
        "unit": "µs",
        "value": 3.0,
        "value_p25": 3.0,
        "value_p75": 3.0,
        "limit": 2.0,
        "limit_p25": 2.0,
        "limit_p75": 2.0,
        "ratio": 1.5,
        "ratio_p25": 1.5,
        "ratio_p75": 1.5,
        "repeats": 1,
        "limit_name": "p",
        "target": 1.6,
        "curve": "update against batch",
        "series": "fused",
        "x": 64,
        "details": {"k": 1},
    }
    assert "curve" not in Figure.of("u", "µs", [3.0], [2.0], "p").line()


def test_a_cell_of_a_table_and_a_promise_of_the_value_itself() -> None:
    cell = Cell("replay of 2^18 steps", "draw 32")
    line = Figure.of("d", "µs", [3.0], [6.0], "peer 1.0", most=3.5, place=cell).line()
    assert (line["table"], line["column"]) == ("replay of 2^18 steps", "draw 32")
    assert line["most"] == 3.5
    assert "most" not in Figure.of("d", "µs", [3.0], [6.0], "peer 1.0").line()
