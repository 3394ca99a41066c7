"""Binned returns as a picture: a panel an environment, a line with its band a method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.curve_plot import save_figure
from pipeline.protocol.bins import Bin
from pipeline.protocol.trained_run import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_bins", "save_bins"]

_COLOURS: Final = ("#2563a8", "#c8641e", "#2f855a", "#7c3aed", "#be185d", "#6b7280")
_COLUMNS: Final = 3
_KEY_HEIGHT: Final = 0.2
"""Inches that a line of the legend takes, which is below the panel, where no curve is."""

_Found = Sequence[tuple[Method, Sequence[Bin]]]


def save_bins(found: _Found, path: Path) -> Path:
    """Draws `found` into `path` (PNG), which appears whole or not at all; gives it back."""
    count = len({method.environment for method, _ in found})
    columns = min(count, _COLUMNS)
    width, height = (8.0, 5.0) if count == 1 else (5.2 * columns, 4.2)
    keys = len({method.name for method, _ in found}) + 1
    size = width, (height + _KEY_HEIGHT * keys) * -(-count // columns)
    with save_figure(path, size, elsewhere="--picture") as figure:
        draw_bins(figure, found)
    return path


def draw_bins(figure: Figure, found: _Found) -> None:
    """Means at the middle of each bin behind the warm-up, on the axis that begins with it."""
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
            title="mean over seeds, 20–80 % band",
            alignment="left",
        )
    for axes in grid[len(environments) :]:
        axes.remove()


def _draw(axes: Axes, method: Method, bins: Sequence[Bin], colour: str) -> None:
    drawn = [each for each in bins if each.number and each.runs]
    steps = [(each.first - 1 + each.last) / 2 for each in drawn]
    label = f"{method.name} ({len(method.runs)})"
    axes.plot(steps, [each.mean for each in drawn], color=colour, marker=".", label=label)
    low, high = ([each.band[i] for each in drawn] for i in (0, 1))
    axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
