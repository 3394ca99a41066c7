"""Learning curves of several runs in one picture: a panel an environment, a colour a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pipeline.comparison import ComparedRun, by_group, by_panel, seed_count
from pipeline.curve_plot import save_figure
from pipeline.learning_curve import Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_comparison", "mean_line", "save_comparison"]

_COLOURS: Final = ("#2563a8", "#c8641e", "#2f855a", "#7c3aed", "#be185d", "#6b7280")
_STROKES: Final = ("solid", (0, (6, 2)), (0, (2, 1.5)), (0, (4, 1.5, 1, 1.5)))
"""Broken lines let a curve show that another one covers."""
_COLUMNS: Final = 3
"""Panels side by side."""
_KEY_HEIGHT: Final = 0.2
"""Inches that a line of the legend takes."""

_Pen = tuple[str, Any]
"""Colour and stroke."""


def save_comparison(rows: Sequence[ComparedRun], path: Path, *, window: int = 20) -> Path:
    """Draws `rows` into `path` (PNG), which appears whole or not at all; gives it back."""
    panels = by_panel(_drawable(rows))
    columns = min(len(panels), _COLUMNS)
    width, height = (8.0, 5.0) if columns == 1 else (5.2 * columns, 4.2)
    keys = max(len(by_group(panel)) for panel in panels.values())
    size = width, (height + _KEY_HEIGHT * (keys + 1)) * -(-len(panels) // columns)
    with save_figure(path, size, elsewhere="`sharpwave curve --picture=PNG`") as figure:
        draw_comparison(figure, rows, window=window)
    return path


def draw_comparison(figure: Figure, rows: Sequence[ComparedRun], *, window: int = 20) -> None:
    """Draws every run that can be: a panel an environment, runs that do not act apart.

    Runs of one group share a colour, the same in all panels. Where a group has several, its runs
    are thin and their mean is thick.
    """
    panels = by_panel(_drawable(rows))
    columns = min(len(panels), _COLUMNS)
    grid = figure.subplots(-(-len(panels) // columns), columns, squeeze=False).flatten()
    pens = _pens(row.group for row in rows)
    for axes, ((environment, offline), panel) in zip(grid, panels.items(), strict=False):
        for group, members in by_group(panel).items():
            _draw_group(axes, members, pens[group], window)
        where = f"{environment}, from a store" if offline else environment
        axes.set_title(where, loc="left", fontweight="bold")
        axes.set_ylabel(panel[0].curve.line_name(window))
        axes.set_xlabel(panel[0].curve.unit)
        _draw_legend(axes, several=len(by_group(panel)) < len(panel))
    for axes in grid[len(panels) :]:
        axes.remove()


def mean_line(lines: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Mean of curves given as steps and values, over the steps that all of them cover.

    Between its points a curve is straight; steps are all that any of them has a point at.
    """
    first = max(steps[0] for steps, _ in lines)
    last = min(steps[-1] for steps, _ in lines)
    steps = np.unique(np.concatenate([steps for steps, _ in lines]))
    steps = steps[(steps >= first) & (steps <= last)]
    return steps, np.mean([np.interp(steps, *line) for line in lines], axis=0)


def _draw_legend(axes: Axes, *, several: bool) -> None:
    """Below the panel, where no curve is; `several` where a group has more than one run."""
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, -0.13),
        borderpad=0.0,
        handlelength=3.0,
        title="thin: each run, thick: their mean" if several else None,
        alignment="left",
    )


def _draw_group(axes: Axes, members: Sequence[ComparedRun], pen: _Pen, window: int) -> None:
    colour, stroke = pen
    label = f"{members[0].group}, {seed_count(members)}"
    lines = [row.curve.line(window) for row in members]
    bold: dict[str, Any] = {"color": colour, "linestyle": stroke, "linewidth": 2, "label": label}
    if len(lines) == 1:
        bold["marker"] = "o" if len(lines[0][0]) == 1 or members[0].curve.offline else None
        axes.plot(*lines[0], markersize=4, **bold)
        return
    for line in lines:
        axes.plot(*line, color=colour, linewidth=0.8, alpha=0.45)
    axes.plot(*mean_line(lines), zorder=3, **bold)


def _drawable(rows: Iterable[ComparedRun]) -> list[ComparedRun]:
    return [row for row in rows if not row.problem]


def _pens(groups: Iterable[str]) -> dict[str, _Pen]:
    """A pen for each group; as many as there are, they come again."""
    return {
        group: (_COLOURS[i % len(_COLOURS)], _STROKES[i % len(_STROKES)])
        for i, group in enumerate(dict.fromkeys(groups))
    }
