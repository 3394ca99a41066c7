from __future__ import annotations

import dataclasses

import numpy as np

from pipeline.curve_text import curve_text
from pipeline.learning_curve import LearningCurve, running_mean

NONE = np.empty(0)


def curve(lengths: list[int], returns: list[float]) -> LearningCurve:
    return LearningCurve(np.cumsum(lengths, dtype=float), np.array(returns), NONE, NONE, NONE)


def test_running_mean_starts_with_what_there_is() -> None:
    values = np.array([1.0, 3.0, 5.0, 7.0])
    assert running_mean(values, 2).tolist() == [1.0, 2.0, 4.0, 6.0]
    assert running_mean(values, 9).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert running_mean(NONE, 3).tolist() == []


def test_bars_rise_with_the_returns() -> None:
    text = curve_text(curve([10] * 4, [0, 1, 2, 3]), window=1, width=4, height=2)
    assert text.splitlines() == [
        "return of training episodes, mean of the last 1",
        "3 ┤  ▃█",
        "0 ┤▁▆██",
        "  └────",
        "   0environment steps         40",
    ]


def test_columns_before_the_first_point_are_empty() -> None:
    evaluated = LearningCurve(NONE, NONE, NONE, NONE, NONE, np.array([2.0, 4]), np.array([1.0, 2]))
    text = curve_text(dataclasses.replace(evaluated, offline=True), width=4, height=2)
    assert text.splitlines()[:3] == ["return of greedy evaluations", "2 ┤   █", "1 ┤ ▁▁█"]
    assert "updates" in text


def test_ascii_only_where_the_terminal_knows_no_more() -> None:
    assert curve_text(curve([5, 5], [1, 2]), unicode=False).isascii()


def test_equal_returns_and_no_returns() -> None:
    assert "┤" in curve_text(curve([3], [-7.0]))
    assert curve_text(curve([], [])) == "no episode has ended yet"
    zeros = curve_text(curve([3], [0.0]), width=4, height=2).splitlines()
    assert [line.split()[0] for line in zeros[1:3]] == ["1", "-1"]
    nearly = curve_text(curve([3, 3], [-0.2, 9.0]), window=1, width=4, height=2)
    assert "-0" not in nearly


def test_last_episodes() -> None:
    assert curve([1, 1, 1], [1.0, 2.0, 4.0]).last(2) == 3.0
    assert np.isnan(curve([], []).last(2))


def test_an_episode_that_was_cut_is_time_without_a_return() -> None:
    cut = curve([10, 10, 20], [0.0, 4.0, np.nan])
    assert cut.last(2) == 2.0
    lines = curve_text(cut, window=1, width=4, height=2).splitlines()
    assert lines[1:3] == ["4 ┤ ███", "0 ┤▁███"]
    assert lines[-1].endswith("40")
    assert curve_text(curve([5], [np.nan])).startswith("every episode was cut")
