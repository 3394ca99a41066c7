"""The learning curve as text, for terminals and logs."""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.learning_curve import LearningCurve, Numbers

__all__ = ["curve_text"]

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_PLAIN: Final = "  ...::##"


def curve_text(
    curve: LearningCurve,
    *,
    window: int = 20,
    width: int = 72,
    height: int = 10,
    unicode: bool = True,
) -> str:
    """A bar chart of the curve's line, `width` columns and `height` lines.

    A column shows the newest point by then: the mean over `window` episodes, or an evaluation
    where the run does not act. With `unicode=False` only ASCII is used.
    """
    if curve.missing:
        return curve.missing
    bars = _bars(curve, window, width)
    low, high = float(np.nanmin(bars)), float(np.nanmax(bars))
    if high - low < 1e-12:
        low, high = low - 1.0, high + 1.0
    levels = np.rint((bars - low) / (high - low) * (height * 8 - 1)) + 1
    heights = np.nan_to_num(levels).astype(np.int64)
    glyphs = _BLOCKS if unicode else _PLAIN
    lines = [
        "".join(glyphs[int(np.clip(level - line * 8, 0, 8))] for level in heights)
        for line in reversed(range(height))
    ]
    return "\n".join([curve.line_name(window), *_with_axes(lines, low, high, curve, unicode)])


def _bars(curve: LearningCurve, window: int, width: int) -> Numbers:
    """A column's height; NaN before the first point."""
    steps, means = curve.line(window)
    ends = curve.end * np.arange(1, width + 1) / width
    points = np.searchsorted(steps, ends, side="right")
    return np.asarray(np.concatenate([[np.nan], means])[points], dtype=np.float64)


def _with_axes(
    lines: list[str], low: float, high: float, curve: LearningCurve, unicode: bool
) -> list[str]:
    tick, wall, corner, floor = ("┤", "│", "└", "─") if unicode else ("|", "|", "+", "-")
    labels = [f"{round(high):,}", *[""] * (len(lines) - 2), f"{round(low):,}"]
    margin = max(len(label) for label in labels)
    drawn = [
        f"{label:>{margin}} {tick if label else wall}{line}".rstrip()
        for label, line in zip(labels, lines, strict=True)
    ]
    width = len(lines[0])
    drawn.append(f"{'':>{margin}} {corner}{floor * width}")
    drawn.append(f"{'':>{margin}}  0{curve.unit:^{max(width - 12, 1)}}{curve.end:>11,.0f}")
    return drawn
