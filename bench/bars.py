"""The picture of a table of peers: for each column, a bar for ours and for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.results import Line
from bench.tables import columns_of, names_of, number, time_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

__all__ = ["draw_bars"]

_WIDTH = 0.8


def draw_bars(picture: Picture, cells: Sequence[Line]) -> None:
    """Grouped bars on a logarithmic scale; each says how many times ours it is."""
    axes = picture.subplots()
    columns, names = columns_of(cells), names_of(cells)
    ours = {cell["column"]: cell["value"] for cell in cells}
    width = _WIDTH / (1 + len(names))
    for turn, name in enumerate(["ours", *names]):
        left = (turn - len(names) / 2) * width
        for place, column in enumerate(columns):
            time = (ours[column], 1.0) if turn == 0 else time_of(cells, name, column)
            if time is None:
                continue
            bar = axes.bar(
                place + left, time[0], width, color=f"C{turn}", label=name if place == 0 else None
            )
            if turn:
                axes.bar_label(bar, [number(time[1], 2)], fontsize=6)
    axes.set_yscale("log")
    axes.set_xticks(range(len(columns)), columns)
    axes.tick_params(labelsize=8)
    axes.set_ylabel(cells[0]["unit"])
    axes.set_title(f"{cells[0]['table']}; numbers: times ours", fontsize=9)
    axes.grid(axis="y", alpha=0.25)
    axes.legend(fontsize=7)
