"""The two pictures of a study of Blind Cliffwalk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pipeline.cliffwalk.record import Record, label_of
from pipeline.cliffwalk.summary import Summary, spread
from pipeline.curve_plot import save_figure
from storage.kernel import Floats
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import SOLVED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["mark_states", "median_curve", "save_errors", "save_updates", "title_figure"]

_SIZE: Final = (12.0, 5.6)
_COLOURS: Final = {
    "uniform": ("#6b7280",),
    "oracle": ("#111827",),
    "per": ("#c8641e", "#f0a868"),
    "pser-max": ("#2563a8", "#7c3aed", "#0ea5e9", "#be185d"),
    "pser-add": ("#2f855a", "#84cc16", "#134e4a"),
}
"""Of each scheme; settings that are played beside each other take one after the other."""
_STROKES: Final = {"epsilon": "solid", "max": (0, (5, 2))}
"""Full lines begin at ε, broken ones at the largest priority."""
_WIDE, _USUAL, _NARROW = 3.2, 1.8, 1.1
"""Of lines: the first settings of a scheme that comes with several, those of one that does not,
and the further settings, which lie above and leave the edges of what they cover."""
_POINTS_A_DECADE: Final = 40


def save_errors(records: Iterable[Record], path: Path) -> Path | None:
    """Draws the median error against updates for the largest n with curves; None without any."""
    drawn = [record for record in records if record.outcome.curve]
    if not drawn:
        return None
    largest = max(record.trial.n for record in drawn)
    groups: dict[str, list[Record]] = {}
    for record in drawn:
        if record.trial.n == largest:
            groups.setdefault(label_of(record.trial), []).append(record)
    pens = _pens(members[0].trial.sampler for members in groups.values())
    with save_figure(path, _SIZE, elsewhere="--folder") as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, from_goal in zip(panels, (False, True), strict=True):
            for (label, members), pen in zip(groups.items(), pens, strict=True):
                axes.plot(*median_curve(members, from_goal), label=label, **pen)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.axhline(SOLVED, color="#9ca3af", linewidth=0.8)
        panels[0].set_xlabel("updates")
        panels[1].set_xlabel("updates after the rewarded transition was first drawn")
        panels[0].set_ylabel("mean squared error of Q")
        _finish(figure, panels[0], f"Blind Cliffwalk, n = {largest}: median over seeds")
    return path


def save_updates(summaries: Sequence[Summary], path: Path) -> Path:
    """Draws updates until the values are learnt against the number of states."""
    groups: dict[str, list[Summary]] = {}
    for summary in summaries:
        groups.setdefault(summary.label, []).append(summary)
    pens = _pens(members[0].sampler for members in groups.values())
    with save_figure(path, _SIZE, elsewhere="--folder") as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, after_goal in zip(panels, (False, True), strict=True):
            for (label, members), pen in zip(groups.items(), pens, strict=True):
                _draw_updates(axes, label, members, pen, after_goal)
            axes.set_yscale("log")
            mark_states(axes, [each.n for each in summaries])
        panels[0].set_ylabel("updates until the error is below 1e-3")
        panels[0].set_title("all updates", loc="left")
        panels[1].set_title("after the rewarded transition was first drawn", loc="left")
        _finish(figure, panels[0], "Blind Cliffwalk: median and its 95 % interval")
    return path


def title_figure(figure: Figure, title: str) -> None:
    """A title above all panels."""
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")


def mark_states(axes: Axes, sizes: Iterable[int]) -> None:
    """Marks a horizontal axis at the numbers of states that were played, and nowhere between."""
    axes.set_xlabel("states n")
    axes.set_xticks(sorted(set(sizes)))


def _draw_updates(
    axes: Axes, label: str, members: Sequence[Summary], pen: dict[str, Any], after_goal: bool
) -> None:
    sizes = [each.n for each in members]
    found = [each.updates_after_goal if after_goal else each.updates for each in members]
    low, high = [each.low for each in found], [each.high for each in found]
    axes.plot(sizes, [each.median for each in found], label=label, marker="o", markersize=3, **pen)
    axes.fill_between(sizes, low, high, color=pen["color"], alpha=0.15, linewidth=0)


def median_curve(members: Sequence[Record], from_goal: bool) -> tuple[Floats, Floats]:
    """Median over trials of the error after 1, …, at points evenly spread over the decades.

    A trial's error holds until it is looked at again, and for good where the trial ended. The
    curve ends where the median is solved.
    """
    starts = [record.outcome.goal_update if from_goal else 0 for record in members]
    lasts = [record.outcome.updates - start for record, start in zip(members, starts, strict=True)]
    decades = np.log10(max(1, *lasts))
    points = np.logspace(0, decades, 2 + int(_POINTS_A_DECADE * decades))
    errors = [_held(record, points + start) for record, start in zip(members, starts, strict=True)]
    median = np.array([spread(column).median for column in np.transpose(errors)])
    shown = np.searchsorted(-median, -SOLVED, side="right") + 1
    return points[:shown], median[:shown]


def _held(record: Record, points: Floats) -> Floats:
    """The error that was last seen at each of `points`."""
    updates, errors = np.array(record.outcome.curve).T
    seen: Floats = errors[np.searchsorted(updates, points, side="right") - 1]
    return seen


def _pens(samplers: Iterable[Sampler]) -> list[dict[str, Any]]:
    """Colour, stroke and width of each line; narrow ones lie above."""
    drawn = list(samplers)
    variants: dict[str, list[tuple[float, ...]]] = {name: [] for name in _COLOURS}
    for sampler in drawn:
        if _variant(sampler) not in variants[sampler.name]:
            variants[sampler.name].append(_variant(sampler))
    return [_pen(sampler, variants[sampler.name]) for sampler in drawn]


def _pen(sampler: Sampler, variants: Sequence[tuple[float, ...]]) -> dict[str, Any]:
    number, colours = variants.index(_variant(sampler)), _COLOURS[sampler.name]
    width = _NARROW if number else _WIDE if len(variants) > 1 else _USUAL
    return {
        "color": colours[number % len(colours)],
        "linestyle": _STROKES[sampler.initial],
        "linewidth": width,
        "zorder": 3 - width / 10,
    }


def _variant(sampler: Sampler) -> tuple[float, ...]:
    """What gives a scheme's lines colours of their own."""
    return sampler.alpha, sampler.decay, sampler.eta


def _finish(figure: Figure, axes: Axes, title: str) -> None:
    title_figure(figure, title)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
