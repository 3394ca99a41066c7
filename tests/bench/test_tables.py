from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench.results import Line
from bench.tables import number, tables_of


def test_rows_are_peers_and_columns_what_was_measured(line: Callable[..., Line]) -> None:
    def cell(table: str, column: str, peer: str, ours: float, theirs: float) -> Line:
        times = {"value": ours, "limit": theirs, "limit_name": peer}
        why: dict[str, Any] = {"details": {"left_out": {"c": "not installed"}}}
        return line(f"{table} {column} {peer}", ours / theirs, table=table, column=column) | (
            times | why
        )

    lines = [
        cell("big", "draw 32", "a 1.0", 10.0, 52.3),
        cell("big", "draw 32", "b 2.0", 10.0, 5.0),
        cell("big", "append", "a 1.0", 2.345, 2.345),
        line("act", 1.5),
        cell("small", "draw 32", "a 1.0", 7.0, 1407.0),
    ]
    first, second = tables_of(lines)
    assert first.splitlines() == [
        "big, µs; in brackets: how many times ours",
        "",
        "| | draw 32 | append |",
        "|---|---|---|",
        "| ours | 10 | 2.35 |",
        "| a 1.0 | 52.3 (5.2) | 2.35 (1) |",
        "| b 2.0 | 5 (0.5) | – |",
        "| c | left out: not installed | |",
    ]
    assert "| a 1.0 | 1,407 (201) |" in second
    assert tables_of([line("act", 1.5)]) == []


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.1234, 3, "0.123"), (12.34, 3, "12.3"), (123.4, 3, "123"), (98765.0, 2, "98,765")],
)
def test_numbers_keep_what_means_something(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text
