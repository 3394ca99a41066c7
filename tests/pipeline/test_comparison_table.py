"""Tables of several runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.comparison import compare
from pipeline.comparison_table import group_table, markdown_table
from pipeline.run_folder import RunFolder


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]


def test_a_column_says_in_what_runs_differ(compared: Path) -> None:
    seeds = compare([RunFolder(compared / name) for name in ("small", "second")])
    assert "group" not in cells(markdown_table(seeds))[0]
    engines = compare([RunFolder(compared / name) for name in ("small", "eager")])
    head, _, first, second = cells(markdown_table(engines))
    at = head.index("group")
    assert (first[at], second[at]) == ("engine=fused", "engine=eager")


def test_updates_have_a_table_of_their_own(compared: Path) -> None:
    rows = compare([RunFolder(compared / name) for name in ("offline", "small")])
    acting, offline = (cells(part) for part in markdown_table(rows).split("\n\n"))
    assert acting[0][4:6] == ["steps", "return, last 20"]
    assert acting[2][0] == "small"
    assert offline[0][4:6] == ["updates", "return, last evaluation"]
    assert offline[2][:1] + offline[2][4:5] == ["offline", "600"]


def test_groups_have_the_spread_of_their_runs(compared: Path) -> None:
    rows = compare([RunFolder(compared / name) for name in ("small", "second", "eager")])
    head, _, *groups = cells(group_table(rows))
    first, second = rows[0].last_return, rows[1].last_return
    assert head == ["environment", "group", "runs", "mean return", "deviation", "range"]
    assert groups == [
        [
            *("InvertedPendulum-v5", "engine=fused", "2 seeds"),
            *(f"{(first + second) / 2:,.1f}", f"{abs(first - second) / np.sqrt(2):,.1f}"),
            f"{min(first, second):,.1f} to {max(first, second):,.1f}",
        ]
    ]


def test_a_seed_that_comes_twice_is_no_second_seed(compared: Path) -> None:
    rows = compare([RunFolder(compared / "small")] * 2)
    assert cells(group_table(rows))[2][2] == "2 runs"


@pytest.mark.parametrize("names", [("small",), ("small", "eager")])
def test_groups_of_one_run_need_no_table(compared: Path, names: tuple[str, ...]) -> None:
    assert group_table(compare([RunFolder(compared / name) for name in names])) == ""
