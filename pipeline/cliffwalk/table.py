"""What `sharpwave cliffwalk` prints of a study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.cliffwalk.summary import Spread, Summary

__all__ = ["markdown_table", "shown_sizes", "table_text", "warnings_of"]

_SHOWN: Final = 3
"""Numbers of states that a table has columns for."""


def markdown_table(summaries: Sequence[Summary], *, after_goal: bool) -> str:
    """Samplers by number of states: updates in all, or those after the first goal draw."""
    sizes = shown_sizes(each.n for each in summaries)
    rows = []
    for label in dict.fromkeys(each.label for each in summaries):
        found = {each.n: each for each in summaries if each.label == label}
        cells = [_cell(found.get(n), after_goal) for n in sizes]
        counts = [str(found[n].trials) if n in found else "–" for n in sizes]
        seeds = counts[0] if len(set(counts)) == 1 else " / ".join(counts)
        rows.append([label, seeds, *cells])
    return table_text(["sampler", "seeds", *(f"n = {n}" for n in sizes)], rows)


def shown_sizes(found: Iterable[int]) -> list[int]:
    """The largest three n that four divides, or the largest three."""
    sizes = sorted(set(found))
    even = [n for n in sizes if n % 4 == 0]
    return (even if len(even) >= _SHOWN else sizes)[-_SHOWN:]


def warnings_of(summaries: Sequence[Summary]) -> list[str]:
    """One warning for each PSER that its maximum initial priorities make slower than PER."""
    found = []
    for label in dict.fromkeys(each.label for each in summaries):
        for each in reversed([each for each in summaries if each.label == label]):
            per = _per_beside(each, summaries)
            if per is None:
                continue
            if each.updates.median > per.updates.median:
                found.append(_warning(each, per))
            break
    return found


def table_text(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table whose columns but the first are aligned to the right."""
    cells = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    rules = ["-" * widths[0], *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    return "\n".join(_line(line, widths) for line in (cells[0], rules, *cells[1:]))


def _per_beside(each: Summary, summaries: Sequence[Summary]) -> Summary | None:
    """PER's summary that differs from a PSER's from maximum priorities by the scheme alone."""
    if not each.sampler.sequential or each.sampler.initial != "max":
        return None
    own = {"sampler": "per", "decay": None, "window": None, "eta": None}
    wanted = each.columns | own
    return next((other for other in summaries if other.columns == wanted), None)


def _warning(each: Summary, per: Summary) -> str:
    ours, theirs = each.updates.median, per.updates.median
    times = "more than PER" if math.isinf(ours) else f"{ours / theirs:.1f} times as many as PER"
    return (
        f"Warning: with maximum initial priorities, {each.label} needs {_number(ours)} updates at "
        f"n = {each.n}, {times} ({_number(theirs)}). Each useless step must be drawn several times "
        "before η lets it fade; start from epsilon in small memories that do not turn over."
    )


def _cell(summary: Summary | None, after_goal: bool) -> str:
    if summary is None:
        return "–"
    found: Spread = summary.updates_after_goal if after_goal else summary.updates
    text = f"{_number(found.median)} ({_number(found.low)}–{_number(found.high)})"
    given_up = summary.trials - summary.converged
    return f"{text}, {given_up} given up" if given_up else text


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:,.0f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cells[0].ljust(widths[0])]
    padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return f"| {' | '.join(padded)} |"
