"""Cost curves of the replay window: a draw and a feed-back against N, in one store."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bench.cheetah import BATCH, spec
from bench.effort import Effort
from bench.figure import Figure, Point
from bench.sampling import feed_back_work, filled_store, gather_work, row_bytes
from bench.timing import alternate, microseconds
from storage.schema import make_schema
from storage.store import Store
from training.vracer import VRacer

__all__ = ["EXPONENTS", "fitting", "measure"]

EXPONENTS = (14, 16, 18, 20, 22)
_CURVE = "draw and feed-back against window"
_OVERLAY_BYTES = 64
"""More than an overlay keeps of a step."""


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """Two figures a window: the newest 2^n steps of one store, which has all of them."""
    windows = fitting([2**each for each in EXPONENTS], shutil.disk_usage(folder).free)
    if not windows:
        return []
    figures: list[Figure] = []
    with filled_store(folder / "store", windows[-1]) as store:
        for window in windows:
            figures += _window(store, window, effort)
    return figures


def fitting(windows: list[int], free: int) -> list[int]:
    """The windows whose store takes at most half of the disk's free bytes; says what it leaves."""
    spaces = spec()
    schema = make_schema(spaces.observation_space, spaces.action_space)
    step = schema.row_bytes + _OVERLAY_BYTES
    kept = [window for window in windows if 2 * window * step <= free]
    for window in windows[len(kept) :]:
        print(
            f"  a window of {window:,} steps needs {2 * window * step / 1e9:.1f} GB of free disk, "
            f"there are {free / 1e9:.1f}: left out",
            file=sys.stderr,
        )
    return kept


def _window(store: Store, window: int, effort: Effort) -> list[Figure]:
    with store.replay(window=window, seed=0, fields=VRacer.fields, private=True) as view:
        width = row_bytes(view)
        samples = alternate(
            {
                "draw": microseconds(lambda: view.sample(BATCH)),
                "feed-back": feed_back_work(view),
                "rows": gather_work(width, view.n_steps),
            },
            effort.repeats(60),
        )
    return [
        Figure.of(
            f"{name} against window {window}",
            "µs",
            samples[name],
            samples["rows"],
            "gathering as many packed rows",
            place=Point(_CURVE, name, window),
            details={"batch": BATCH, "row_bytes": width},
        )
        for name in ("draw", "feed-back")
    ]
