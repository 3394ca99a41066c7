"""Cost curves of an update: time against batch size and against the hidden layers' width."""

from __future__ import annotations

from pathlib import Path

from bench.cheetah import BATCH, HIDDEN
from bench.effort import Effort
from bench.figure import Figure, Point
from bench.sampling import filled_store
from bench.timing import Work, alternate
from bench.updating import engine_works

__all__ = ["BATCHES", "WIDTHS", "measure"]

BATCHES = (32, 64, 128, 256, 512, 1024, 2048, 4096)
WIDTHS = (32, 64, 128, 256, 512)


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """One figure an engine and size; the compiled engine compiles anew for each."""
    figures = []
    with filled_store(folder / "store", 2 * max(BATCHES)) as store:
        for batch in BATCHES:
            works = engine_works(store, batch, HIDDEN)
            figures += _point("update against batch", batch, works, effort)
        for width in WIDTHS:
            works = engine_works(store, BATCH, width)
            figures += _point("update against width", width, works, effort)
    return figures


def _point(curve: str, x: int, works: dict[str, Work], effort: Effort) -> list[Figure]:
    samples = alternate(works, effort.repeats(30), warm=3)
    limit = samples.pop("products")
    return [
        Figure.of(
            f"{curve} {x}, {name}",
            "µs",
            values,
            limit,
            "bare matrix products",
            place=Point(curve, name, x),
        )
        for name, values in samples.items()
    ]
