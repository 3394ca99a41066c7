"""Tables of compared runs that read well on a terminal and in a document alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pipeline.comparison import ComparedRun, by_group, by_panel, seed_count
from pipeline.text_table import text_table

__all__ = ["group_table", "markdown_table"]

_NUMBERS_FROM: Final = "seed"
"""The first column whose cells are aligned to the right."""


def markdown_table(rows: Sequence[ComparedRun], *, window: int = 20) -> str:
    """A row each run; where they differ by more than their seed, a column says in what.

    Runs that learn from a store have a table of their own, since they count updates.
    """
    grouped = any(row.group != row.rules for row in rows)
    parts = [[row for row in rows if row.curve.offline == offline] for offline in (False, True)]
    return "\n\n".join(_runs(part, grouped, window) for part in parts if part)


def group_table(rows: Sequence[ComparedRun]) -> str:
    """A row each group of several runs, with the spread of their last returns; empty for none."""
    heads = ["environment", "group", "runs", "mean return", "deviation", "range"]
    lines = [
        [_where(environment, offline), group, seed_count(drawn), *_spread(drawn)]
        for (environment, offline), panel in by_panel(rows).items()
        for group, members in by_group(panel).items()
        if len(drawn := [row for row in members if not row.problem]) > 1
    ]
    return text_table(heads, lines, numbers_from=3) if lines else ""


def _runs(rows: Sequence[ComparedRun], grouped: bool, window: int) -> str:
    offline = rows[0].curve.offline
    unit, mean = (
        ("updates", "return, last evaluation") if offline else ("steps", f"return, last {window}")
    )
    heads = ["run", "environment", "rules", *["group"] * grouped, "seed", unit, mean]
    heads += ["n_far/N, 2nd half", "β at the end", f"{unit}/s"]
    lines = [_cells(row, grouped) for row in rows]
    return text_table(heads, lines, numbers_from=heads.index(_NUMBERS_FROM))


def _cells(row: ComparedRun, grouped: bool) -> list[str]:
    return [
        *(row.name, row.environment, row.rules, *[row.group] * grouped),
        *(str(row.seed), f"{row.steps:,}", _number(row.last_return, ",.1f")),
        *(_number(row.far_fraction, ".3f"), _number(row.beta, ".3f")),
        _number(row.steps_per_second, ",.0f"),
    ]


def _spread(rows: Sequence[ComparedRun]) -> list[str]:
    returns = np.array([row.last_return for row in rows])
    return [
        f"{returns.mean():,.1f}",
        f"{returns.std(ddof=1):,.1f}",
        f"{returns.min():,.1f} to {returns.max():,.1f}",
    ]


def _where(environment: str, offline: bool) -> str:
    return f"{environment}, from a store" if offline else environment


def _number(value: float, layout: str) -> str:
    return "–" if np.isnan(value) else format(value, layout)
