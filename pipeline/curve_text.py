"""The learning curve as text, for terminals and logs."""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.learning_curve import LearningCurve, Numbers

__all__ = ["curve_text"]

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_PLAIN: Final = "  ...::##"


def curve_text(
    curve: LearningCurve, *, width: int = 72, height: int = 10, unicode: bool = True
) -> str:
    """A bar chart of mean return by environment steps, `width` columns and `height` lines.

    Each column is the mean of the episodes that ended in its share of the steps; a column in which
    none ended repeats the one before. With `unicode=False` only ASCII is used.
    """
    if len(curve.returns) == 0:
        return "no episode has ended yet"
    bars = _column_means(curve, width)
    low, high = float(bars.min()), float(bars.max())
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    levels = np.rint((bars - low) / (high - low) * (height * 8 - 1)).astype(np.int64) + 1
    glyphs = _BLOCKS if unicode else _PLAIN
    lines = [
        "".join(glyphs[int(np.clip(level - line * 8, 0, 8))] for level in levels)
        for line in reversed(range(height))
    ]
    return "\n".join(_with_axes(lines, low, high, float(curve.steps[-1]), unicode))


def _column_means(curve: LearningCurve, width: int) -> Numbers:
    column = np.minimum(curve.steps / curve.steps[-1] * width, width - 1).astype(np.int64)
    counts = np.bincount(column, minlength=width)
    sums = np.bincount(column, weights=curve.returns, minlength=width)
    filled = np.flatnonzero(counts)
    # Each column takes the last filled one at or before it (the first filled one at the left).
    source = filled[np.maximum(np.searchsorted(filled, np.arange(width), side="right") - 1, 0)]
    return np.asarray(sums[source] / counts[source], dtype=np.float64)


def _with_axes(lines: list[str], low: float, high: float, steps: float, unicode: bool) -> list[str]:
    tick, wall, corner, floor = ("┤", "│", "└", "─") if unicode else ("|", "|", "+", "-")
    labels = [f"{high:,.0f}", *[""] * (len(lines) - 2), f"{low:,.0f}"]
    margin = max(len(label) for label in labels)
    drawn = [
        f"{label:>{margin}} {tick if label else wall}{line}".rstrip()
        for label, line in zip(labels, lines, strict=True)
    ]
    width = len(lines[0])
    drawn.append(f"{'':>{margin}} {corner}{floor * width}")
    drawn.append(f"{'':>{margin}}  0{'environment steps':^{width - 12}}{steps:>11,.0f}")
    return ["mean return of training episodes", *drawn]
