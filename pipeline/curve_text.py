"""The learning curve as text, for terminals and logs."""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.learning_curve import LearningCurve, Numbers, running_mean

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
    """A bar chart of return by environment steps, `width` columns and `height` lines.

    A column shows the mean over the last `window` episodes that had ended by then. With
    `unicode=False` only ASCII is used.
    """
    if len(curve.returns) == 0:
        return "no episode has ended yet"
    bars = _bars(curve, window, width)
    low, high = float(bars.min()), float(bars.max())
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    levels = np.rint((bars - low) / (high - low) * (height * 8 - 1)).astype(np.int64) + 1
    glyphs = _BLOCKS if unicode else _PLAIN
    lines = [
        "".join(glyphs[int(np.clip(level - line * 8, 0, 8))] for level in levels)
        for line in reversed(range(height))
    ]
    title = f"return of training episodes, mean of the last {window}"
    return "\n".join([title, *_with_axes(lines, low, high, float(curve.steps[-1]), unicode)])


def _bars(curve: LearningCurve, window: int, width: int) -> Numbers:
    ends = curve.steps[-1] * np.arange(1, width + 1) / width
    ended = np.searchsorted(curve.steps, ends, side="right")
    means = running_mean(curve.returns, window)
    return np.asarray(means[np.maximum(ended - 1, 0)], dtype=np.float64)


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
    drawn.append(f"{'':>{margin}}  0{'environment steps':^{max(width - 12, 1)}}{steps:>11,.0f}")
    return drawn
