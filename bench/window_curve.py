"""Cost curves of the replay window: draws, feed-backs and memory against N, in one store."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np

from bench.cheetah import BATCH, spec
from bench.effort import Effort
from bench.figure import Figure, Point
from bench.memory import available_bytes, bytes_a_step
from bench.own_buffer import FIELDS, set_priorities
from bench.priorities import DECAY, errors_back_work
from bench.sampling import feed_back_work, filled_store, gather_work, row_bytes, touch_pages
from bench.timing import alternate, microseconds
from storage.schema import make_schema
from storage.store import Store
from training.agents.vracer.agent import VRacer

__all__ = ["EXPONENTS", "fitting", "measure"]

EXPONENTS = (14, 16, 18, 20, 22, 24)
_REPLAY, _PRIORITIES = "draw and feed-back against window", "priorities against window"
_MEMORY = "memory against window"
_OVERLAY_BYTES = 64
"""More than an overlay keeps of a step."""
_MEMORY_BYTES = 512
"""More than views, their private overlays and packed rows to compare with take for a step."""
_PRIORITY_BYTES = 8
"""A float64, the least that a sum tree keeps for a step."""


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """The newest 2^n steps of one store, which has all of them, each with a random priority."""
    free = {"disk": shutil.disk_usage(folder).free, "memory": available_bytes()}
    windows = fitting([2**each for each in EXPONENTS], free)
    if not windows:
        return []
    figures: list[Figure] = []
    with filled_store(folder / "store", windows[-1], spec(np.float32)) as store:
        set_priorities(store, windows[-1])
        for window in windows:
            figures += _replay(store, window, effort)
            figures += _priorities(store, window, effort)
            figures += _memory(store, window)
    return figures


def fitting(windows: list[int], free: dict[str, int]) -> list[int]:
    """The windows whose store takes at most half of the disk's free bytes, and that fit memory.

    Says what it leaves out.
    """
    spaces = spec(np.float32)
    schema = make_schema(spaces.observation_space, spaces.action_space)
    needs = {"disk": 2 * (schema.row_bytes + _OVERLAY_BYTES), "memory": _MEMORY_BYTES}
    kept = []
    for window in windows:
        short = [name for name, step in needs.items() if window * step > free[name]]
        for name in short:
            print(
                f"  a window of {window:,} steps needs {window * needs[name] / 1e9:.1f} GB of free "
                f"{name}, there are {free[name] / 1e9:.1f}: left out",
                file=sys.stderr,
            )
        kept += [] if short else [window]
    return kept


def _replay(store: Store, window: int, effort: Effort) -> list[Figure]:
    """V-RACER's draw, uniform, and its feed-back of values."""
    with store.replay(window, seed=0, fields=VRacer.fields, private=True) as view:
        touch_pages(view)
        width = row_bytes(view)
        samples = alternate(
            {
                "draw": microseconds(lambda: view.sample(BATCH)),
                "feed-back": feed_back_work(view),
                "rows": gather_work(width, view.n_steps),
            },
            effort.repeats(60),
        )
    return _points(_REPLAY, samples, window, width)


def _priorities(store: Store, window: int, effort: Effort) -> list[Figure]:
    """The peers' fields by priority, and the feed-back of errors."""
    with (
        store.replay(window, "per", fields=FIELDS, private=True) as per,
        store.replay(window, "pser", sequences=DECAY, fields=FIELDS, private=True) as pser,
    ):
        touch_pages(per)
        touch_pages(pser)
        width = row_bytes(per)
        samples = alternate(
            {
                "PER draw": microseconds(lambda: per.sample(BATCH)),
                "PER feed-back": errors_back_work(per),
                "PSER feed-back": errors_back_work(pser),
                "rows": gather_work(width, per.n_steps),
            },
            effort.repeats(60),
        )
    return _points(_PRIORITIES, samples, window, width)


def _points(curve: str, samples: dict[str, list[float]], window: int, width: int) -> list[Figure]:
    return [
        Figure.of(
            f"{name} against window {window}",
            "µs",
            samples[name],
            samples["rows"],
            "gathering as many packed rows",
            place=Point(curve, name, window),
            details={"batch": BATCH, "row_bytes": width},
        )
        for name in samples
        if name != "rows"
    ]


def _memory(store: Store, window: int) -> list[Figure]:
    """What a view keeps of a step in memory, besides the maps of its store and overlay."""
    return [
        Figure.of(
            f"{scheme} memory against window {window}",
            "bytes a step",
            [bytes_a_step(store, window, scheme)],
            [_PRIORITY_BYTES],
            "one priority, float64",
            place=Point(_MEMORY, scheme, window),
        )
        for scheme in ("uniform", "per")
    ]
