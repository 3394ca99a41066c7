"""What stands in a metrics file, and which bytes are none."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

__all__ = ["MetricsError", "MetricsTable", "parse_metrics"]

_LONGEST = 64
"""Characters of a number; a float has at most 24."""


class MetricsError(Exception):
    """The bytes are no metrics; the message says why."""


class MetricsTable(NamedTuple):
    """The whole rows of a file."""

    columns: list[str]
    rows: list[dict[str, str]]
    torn: bool = False
    """Whether something behind them was left by a write that did not end."""


def parse_metrics(data: bytes, steps: tuple[str, ...]) -> MetricsTable:
    """The rows in ``data``; a last one without a line end or with other cells than the header's
    is torn, and none.

    Args:
        data: A whole file.
        steps: Columns of which one says, in every row, where the run was.

    Raises:
        MetricsError: it was not written by a run.
    """
    whole = data[: data.rfind(b"\n") + 1]
    torn = len(whole) < len(data)
    try:
        lines = list(csv.reader(io.StringIO(whole.decode(), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise MetricsError(str(error)) from error
    if not lines:
        return MetricsTable([], [], torn)
    columns, *cells = lines
    if len(set(columns)) < len(columns) or not set(steps) & set(columns):
        raise MetricsError(f"its columns are {', '.join(columns)[:80]!r}")
    if cells and len(cells[-1]) != len(columns):
        cells.pop()
        torn = True
    for number, row in enumerate(cells, 2):
        _check_row(columns, row, steps, number)
    return MetricsTable(columns, [dict(zip(columns, row, strict=True)) for row in cells], torn)


def _check_row(columns: list[str], row: list[str], steps: tuple[str, ...], number: int) -> None:
    if len(row) != len(columns):
        raise MetricsError(f"line {number} has {len(row)} cells, not {len(columns)}")
    for name, cell in zip(columns, row, strict=True):
        if cell and not _is_number(cell, whole=name in steps):
            raise MetricsError(f"{name} in line {number} is {cell[:40]!r}")
    if not any(cell for name, cell in zip(columns, row, strict=True) if name in steps):
        raise MetricsError(f"line {number} has no steps")


def _is_number(cell: str, *, whole: bool) -> bool:
    if len(cell) > _LONGEST:
        return False
    try:
        number = int(cell) if whole else float(cell)
    except ValueError:
        return False
    return number >= 0 or not whole
