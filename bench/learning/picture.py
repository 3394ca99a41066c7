"""Pictures of the results page: a row an environment, a column an agent, a line a method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from pipeline.curve_plot import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["save_picture"]

_COLOURS: Final = {
    "ER": "#6b7280",
    "ER, PER": "#c8641e",
    "ER, PSER": "#2f7d4f",
    "ReF-ER": "#2563a8",
}
_PANEL: Final = (3.6, 2.8)

_Lines = Sequence[dict[str, Any]]


def save_picture(lines: Iterable[dict[str, Any]], path: Path) -> Path:
    """Draws mean and range over seeds of the returns while training, by bins, into `path`."""
    found = [(*line["method"].split(", ", 1), line) for line in lines]
    shown = [each for each in found if each[1] in _COLOURS]
    environments = list(dict.fromkeys(line["environment"] for _, _, line in shown))
    agents = list(dict.fromkeys(agent for agent, _, _ in shown))
    across = len(agents) == 1  # then environments stand side by side
    grid = (1, len(environments)) if across else (len(environments), len(agents))
    size = _PANEL[0] * grid[1], _PANEL[1] * grid[0]
    share: Literal["none", "row"] = "none" if across else "row"
    with save_figure(path, size, elsewhere="--picture") as figure:
        panels = figure.subplots(*grid, sharex=share, sharey=share, squeeze=False)
        for row, environment in zip(panels.T if across else panels, environments, strict=True):
            for axes, agent in zip(row, agents, strict=True):
                own = [
                    (method, line)
                    for name, method, line in shown
                    if name == agent and line["environment"] == environment
                ]
                for method in _COLOURS:
                    _draw(axes, method, [line for name, line in own if name == method])
                axes.set_title(f"{agent}, {environment}", loc="left", fontweight="bold")
            row[0].set_ylabel("return of training episodes")
            if row[0].lines:
                row[0].legend(loc="upper left")
        for axes in panels[-1]:
            axes.set_xlabel("environment steps behind the warm-up")
    return path


def _draw(axes: Axes, method: str, lines: _Lines) -> None:
    """Mean of the bins behind the warm-up, and the range of the seeds."""
    if not lines:
        return
    shortest = min(len(line["bins"]) for line in lines)
    returns = np.array([line["bins"][1:shortest] for line in lines])
    steps = lines[0]["bin_steps"] * (np.arange(returns.shape[1]) + 0.5)
    colour = _COLOURS[method]
    axes.plot(steps, returns.mean(0), color=colour, marker=".", label=method)
    axes.fill_between(steps, returns.min(0), returns.max(0), color=colour, alpha=0.2, linewidth=0)
