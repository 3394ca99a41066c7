"""The picture of where a step's time goes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.figure import Spread

__all__ = ["draw"]


def draw(parts: Mapping[str, Spread], path: Path) -> Path:
    """Draws one bar a part, the longest on top, with microseconds and share; the path."""
    from matplotlib.figure import Figure as Picture

    rows = sorted(parts.items(), key=lambda item: item[1].median)
    medians = [spread.median for _, spread in rows]
    spreads = [
        [spread.median - spread.p25 for _, spread in rows],
        [spread.p75 - spread.median for _, spread in rows],
    ]
    whole = sum(medians)
    picture = Picture(figsize=(7.2, 0.8 + 0.27 * len(rows)), layout="constrained")
    axes = picture.subplots()
    axes.barh([name for name, _ in rows], medians, xerr=spreads, color="#4c78a8", ecolor="#999999")
    for place, (_, spread) in enumerate(rows):
        share = 100 * spread.median / whole
        axes.text(
            spread.p75, place, f"  {spread.median:,.1f} µs, {share:.1f} %", va="center", size=8
        )
    axes.set_xlim(0, 1.25 * max(spread.p75 for _, spread in rows))
    axes.set_xlabel(
        f"µs of a step's {whole:,.0f} µs ({1e6 / whole:,.0f} steps/s); lines: quartiles"
    )
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=100)
    return path
