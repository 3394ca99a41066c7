"""Learning curves of several runs in one picture, those of the same kind in one colour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pipeline.comparison import ComparedRun
from pipeline.curve_plot import save_figure
from pipeline.learning_curve import running_mean

__all__ = ["save_comparison"]

_COLOURS: Final = ("#2563a8", "#c8641e", "#2f855a", "#7c3aed", "#be185d", "#6b7280")


def save_comparison(rows: Sequence[ComparedRun], path: Path, *, window: int = 20) -> Path:
    """Draws every run's mean of `window` training episodes into `path` (PNG); gives it back.

    Runs of the same environment and rules share a colour; the legend counts their seeds.
    """
    kinds = sorted({_kind(row) for row in rows}, reverse=True)
    with save_figure(path) as figure:
        axes = figure.subplots()
        for kind, colour in zip(kinds, _cycle(len(kinds)), strict=True):
            mine = [row for row in rows if _kind(row) == kind]
            for number, row in enumerate(mine):
                label = f"{' '.join(kind)}, {len(mine)} seed{'s' * (len(mine) > 1)}"
                axes.plot(
                    row.curve.steps,
                    running_mean(row.curve.returns, window),
                    color=colour,
                    linewidth=1.6,
                    alpha=0.85,
                    label=None if number else label,
                )
        axes.set_ylabel(f"return of training episodes, mean of the last {window}")
        axes.set_xlabel("environment steps")
        axes.legend(loc="upper left")
    return path


def _kind(row: ComparedRun) -> tuple[str, str]:
    return row.environment, row.rules


def _cycle(count: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(count)]
