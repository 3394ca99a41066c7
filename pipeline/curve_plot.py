"""The learning curve as a picture: returns above, ReF-ER's β and n_far/N below."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.learning_curve import LearningCurve
from storage.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_curve", "save_curve", "save_figure"]

_UNWRITABLE: Final = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ENOENT,
}
_BLUE: Final = "#2563a8"
_ORANGE: Final = "#c8641e"
_GREY: Final = "#6b7280"
_STYLE: Final[dict[Any, Any]] = {
    "axes.edgecolor": "#9ca3af",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
}


def save_curve(curve: LearningCurve, path: Path, *, title: str, window: int = 20) -> Path:
    """Draws `curve` into `path` (PNG), which appears whole or not at all, and gives `path` back.

    `window` is the number of episodes that the line of means runs over.
    """
    with save_figure(path, elsewhere="`sharpwave curve --picture=PNG`") as figure:
        draw_curve(figure, curve, title=title, window=window)
    return path


def draw_curve(figure: Figure, curve: LearningCurve, *, title: str, window: int = 20) -> None:
    """Draws returns into `figure`, and ReF-ER's schedule below them."""
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.2])
    if curve.offline:
        _draw_evaluations(above, curve)
    else:
        _draw_returns(above, curve, window)
    _draw_schedule(below, curve)
    above.set_title(title, loc="left", fontweight="bold")
    below.set_xlabel(curve.unit)


@contextmanager
def save_figure(
    path: Path, size: tuple[float, float] = (8.0, 5.6), *, elsewhere: str
) -> Iterator[Figure]:
    """A figure in the product's style, which becomes `path` (PNG), whole or not at all.

    `size` is in inches. Its horizontal axes are marked in thousands of steps. `elsewhere` is what
    gives the picture another place.

    Raises:
        ConfigError: it cannot be written there; the message names `elsewhere`.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, dpi=130, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        for axes in figure.axes:
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        staged = path.with_name(f".{path.name}.new")
        try:
            figure.savefig(staged, format="png")
            staged.replace(path)
        except OSError as error:
            with suppress(OSError):
                staged.unlink(missing_ok=True)
            if error.errno not in _UNWRITABLE:
                raise
            raise ConfigError(
                f"the picture {path} cannot be written: {error.strerror}; give another place by "
                f"{elsewhere}"
            ) from error


def _draw_returns(axes: Axes, curve: LearningCurve, window: int) -> None:
    dots = curve.line(1)
    axes.scatter(*dots, s=10, color=_BLUE, alpha=0.35, linewidths=0, label="an episode")
    steps, mean = curve.line(window)
    axes.plot(steps, mean, color=_BLUE, linewidth=2, label=f"mean of the last {window} episodes")
    if len(curve.greedy_steps):
        axes.plot(
            curve.greedy_steps,
            curve.greedy_returns,
            color=_ORANGE,
            linestyle="none",
            marker="D",
            markersize=5,
            label="greedy evaluation",
        )
    if curve.warmup:
        axes.axvline(curve.warmup, color=_GREY, linewidth=1, linestyle=":", label="warm-up ends")
    axes.set_ylabel("return of training episodes")
    axes.legend(loc="upper left")


def _draw_evaluations(axes: Axes, curve: LearningCurve) -> None:
    axes.plot(
        *(curve.greedy_steps, curve.greedy_returns),
        color=_ORANGE,
        linewidth=2,
        marker="D",
        markersize=5,
        label="greedy evaluation",
    )
    axes.set_ylabel("return of greedy evaluations")
    axes.legend(loc="upper left")


def _draw_schedule(axes: Axes, curve: LearningCurve) -> None:
    axes.plot(curve.schedule_steps, curve.beta, color=_GREY, linewidth=1.5, label="β")
    axes.plot(
        curve.schedule_steps, curve.far_fraction, color=_ORANGE, linewidth=1.5, label="n_far / N"
    )
    if curve.far_target is not None:
        axes.axhline(
            curve.far_target, color=_ORANGE, linewidth=0.8, linestyle="--", label="D", zorder=1
        )
    if curve.warmup:
        axes.axvline(curve.warmup, color=_GREY, linewidth=1, linestyle=":")
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("ReF-ER")
    axes.legend(loc="upper left", ncols=3)
