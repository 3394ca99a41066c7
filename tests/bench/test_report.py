from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.report import main, markdown, verdict
from bench.results import Line


def test_a_table_ready_to_paste(line: Callable[..., Line]) -> None:
    lines = [line("act", 1.5), line("draw", 700.0, target=800.0)]
    text, table = markdown(lines).split("\n\n")
    assert "1 is the limit itself, larger is slower" in text
    assert table.splitlines() == [
        "| figure | measured | limit | | ratio | target |",
        "|---|---|---|---|---|---|",
        "| act | 3 µs | 2 µs | the limit | 1.5 (1.49–1.51) | |",
        "| draw | 1,400 µs | 2 µs | the limit | 700 (700–700) | ≤ 800 |",
    ]


def test_points_of_curves_are_left_to_the_plots(line: Callable[..., Line]) -> None:
    point = line("update 32", 1.0, curve="c", series="s", x=32)
    assert markdown([point]) == "cost curves only: see the plots"
    assert "update" not in markdown([line("act", 1.0), point])


def test_tables_of_peers_follow_the_table_of_figures(line: Callable[..., Line]) -> None:
    cell = line("t: draw, beside p", 0.5, table="t", column="draw")
    assert markdown([cell, line("act", 1.5)]).count("\n\n") == 3
    assert markdown([line("act", 1.5)]).count("\n\n") == 1
    assert markdown([cell]).startswith("t, µs; in brackets: how many times ours")


def test_a_missed_target_is_told(line: Callable[..., Line]) -> None:
    assert verdict(line("a", 1.02, target=1.03)) == "≤ 1.03"
    assert verdict(line("a", 1.04, target=1.03)) == "≤ 1.03, missed"
    assert verdict(line("a", 1.04)) == ""
    assert verdict(line("a", 1.04, most=2.08)) == "≤ 2.08 µs"
    assert verdict(line("a", 1.04, most=2.0, target=1.5)) == "≤ 1.5; ≤ 2 µs, missed"


def test_the_newest_of_every_figure_is_printed(
    line: Callable[..., Line], write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(line("a", 1.0), line("b", 5.0), line("a", 2.0, run="2"))
    assert main([str(path)]) == 0
    shown = capsys.readouterr().out
    assert "| a | 4 µs |" in shown
    assert "| b | 10 µs |" in shown


def test_the_newest_run_is_compared_without_measuring(
    line: Callable[..., Line], write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(line("a", 1.0), line("a", 2.0, run="2"))
    assert main([str(path), "--compare", str(path)]) == 1
    assert "slower than before: a" in capsys.readouterr().out


def test_bad_input_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none.jsonl")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("error: ")
