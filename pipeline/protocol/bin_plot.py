"""Binned returns as a picture: a panel an environment, a line with its band a method."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Final

import numpy as np

from pipeline.curve_plot import save_figure
from pipeline.protocol.bins import Bin
from pipeline.protocol.trained_run import Method

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_bins", "save_bins"]

_COLOURS: Final = ("#2563a8", "#c8641e", "#2f855a", "#7c3aed", "#be185d", "#6b7280")
_COLUMNS: Final = 3
_KEY_HEIGHT: Final = 0.2
"""Inches that a line of the legend takes, which is below the panel, where no curve is."""

_LABEL_WIDTH: Final = 56
"""Characters of a line of the legend, which fit below the narrowest panel."""
_TITLE: Final = "mean over seeds, 20–80 % band;\ndashed: bins that not all seeds have"

_Found = Sequence[tuple[Method, Sequence[Bin]]]


def save_bins(found: _Found, path: Path) -> Path:
    """Draws `found` into `path` (PNG), which appears whole or not at all; gives it back."""
    count = len({method.environment for method, _ in found})
    columns = min(count, _COLUMNS)
    width, height = (8.0, 5.0) if count == 1 else (5.2 * columns, 4.2)
    lines = [_TITLE, *{_label(method) for method, _ in found}]
    keys = sum(text.count("\n") + 1 for text in lines)
    size = width, (height + _KEY_HEIGHT * keys) * -(-count // columns)
    with save_figure(path, size, elsewhere="--picture") as figure:
        draw_bins(figure, found)
    return path


def draw_bins(figure: Figure, found: _Found) -> None:
    """Means at the middle of each bin behind the warm-up, on the axis that begins with it.

    Lines are dashed where a bin is partial or lacks a run.
    """
    environments = list(dict.fromkeys(method.environment for method, _ in found))
    names = list(dict.fromkeys(method.name for method, _ in found))
    columns = min(len(environments), _COLUMNS)
    grid = figure.subplots(-(-len(environments) // columns), columns, squeeze=False).flatten()
    for axes, environment in zip(grid, environments, strict=False):
        for method, bins in found:
            if method.environment == environment:
                _draw(axes, method, bins, _COLOURS[names.index(method.name) % len(_COLOURS)])
        axes.set_title(environment, loc="left", fontweight="bold")
        axes.set_xlabel("environment steps behind the warm-up")
        axes.set_ylabel("return of training episodes")
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(0.0, -0.13),
            borderpad=0.0,
            title=_TITLE,
            alignment="left",
        )
    for axes in grid[len(environments) :]:
        axes.remove()


def _draw(axes: Axes, method: Method, bins: Sequence[Bin], colour: str) -> None:
    behind = [each for each in bins if each.number]
    drawn = [each for each in behind if each.runs]
    solid = [each.mean if _whole(each) else np.nan for each in behind]
    axes.plot([*map(_middle, behind)], solid, color=colour, marker=".", label=_label(method))
    steps = [*map(_middle, drawn)]
    dashed = _dashed(drawn)
    if not np.isnan(dashed).all():
        axes.plot(steps, dashed, color=colour, marker=".", linestyle="--")
    low, high = ([each.band[i] for each in drawn] for i in (0, 1))
    axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)


def _label(method: Method) -> str:
    return fill(f"{method.name} ({len(method.runs)})", _LABEL_WIDTH)


def _middle(each: Bin) -> float:
    return (each.first - 1 + each.last) / 2


def _whole(each: Bin) -> bool:
    """Whether all runs have finished the bin, and have an episode in it."""
    return each.complete and each.runs == len(each.means)


def _dashed(drawn: Sequence[Bin]) -> npt.NDArray[np.float64]:
    """Means of the bins that are not whole and of those beside them, NaN of the others.

    Bins that no run has an episode in are not drawn, and the line goes on behind them dashed.
    """
    kept = np.array([not _whole(each) for each in drawn], dtype=bool)
    for i, (one, other) in enumerate(pairwise(drawn)):
        if not (_whole(one) and _whole(other)) or other.number - one.number > 1:
            kept[i : i + 2] = True
    return np.where(kept, [each.mean for each in drawn], np.nan)
