"""What `sharpwave cliffwalk` prints of a study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pipeline.cliffwalk.summary import Spread, Summary
from pipeline.text_table import text_table

__all__ = ["markdown_table", "shown_sizes", "sizes_text", "table_text", "warnings_of"]

_SHOWN: Final = 3
"""Numbers of states that a table has columns for."""
_NARROWEST: Final = 3
"""Characters of a column: a rule in Markdown is made of at least as many."""


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
    """What initial priorities cost by these rows, each for the largest n that shows it.

    PSER from the largest priority is held against PER from the largest, and what begins at ε
    against uniform replay; no warning is about what the rows do not hold.
    """
    found = []
    for label in dict.fromkeys(each.label for each in summaries):
        for each in reversed([each for each in summaries if each.label == label]):
            rival = _rival(each, summaries)
            if rival is None:
                continue
            if each.updates.median > rival.updates.median:
                found.append(_warning(each, rival, summaries))
            break
    return found


def sizes_text(found: Iterable[int]) -> str:
    """Which numbers of states a table leaves out, and how many; empty where it has all."""
    sizes = sorted(set(found))
    shown = [str(n) for n in shown_sizes(sizes)]
    if len(shown) == len(sizes):
        return ""
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
    return f"The tables show n = {listed} of {len(sizes)} numbers of states"


def table_text(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table whose columns but the first are aligned to the right."""
    return text_table(heads, rows, numbers_from=1, narrowest=_NARROWEST)


def _rival(each: Summary, summaries: Sequence[Summary]) -> Summary | None:
    """Whose updates a warning would compare with: what differs by the scheme alone."""
    sampler = each.sampler
    if sampler.sequential and sampler.initial == "max":
        return _beside(each, summaries, sampler="per", decay=None, window=None, eta=None)
    if sampler.prioritized and sampler.initial == "epsilon":
        settings = dict.fromkeys(("initial", "epsilon", "alpha", "decay", "window", "eta"))
        return _beside(each, summaries, sampler="uniform", **settings)
    return None


def _beside(each: Summary, summaries: Sequence[Summary], **own: Any) -> Summary | None:
    """The summary that differs in `own` alone; None where nothing of the kind was played."""
    wanted = each.columns | own
    return next((other for other in summaries if other.columns == wanted), None)


def _warning(each: Summary, rival: Summary, summaries: Sequence[Summary]) -> str:
    """How much more it needs than `rival`, and what it needs from the other initial priority."""
    ours, theirs = each.updates.median, rival.updates.median
    name = "PER" if rival.sampler.prioritized else "uniform replay"
    times = (
        f"more than {name}" if math.isinf(ours) else f"{ours / theirs:.1f} times as many as {name}"
    )
    largest = each.sampler.initial == "max"
    kind = "maximum initial priorities" if largest else "small initial priorities"
    text = (
        f"Warning: with {kind}, {each.label} needs {_number(ours)} updates at n = {each.n}, "
        f"{times} ({_number(theirs)})."
    )
    other = _beside(each, summaries, initial="epsilon" if largest else "max")
    start = f"{each.sampler.epsilon:g}" if largest else "max"
    return (
        text if other is None else f"{text} From {start} it needs {_number(other.updates.median)}."
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
