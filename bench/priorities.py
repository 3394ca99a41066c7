"""What priorities cost: a prioritized draw beside a uniform one, PSER's feed-back beside PER's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import numpy as np

from bench.cheetah import BATCH, spec
from bench.effort import Effort
from bench.figure import Figure
from bench.own_buffer import FIELDS, set_priorities
from bench.sampling import filled_store, row_bytes, touch_pages
from bench.timing import Work, alternate, microseconds
from bench.transitions import PRIORITIES
from storage.replay import ReplayView
from storage.replay.schemes.priority_settings import SequenceSettings

__all__ = ["DECAY", "errors_back_work", "measure"]

_WINDOW = 2**20
DECAY: Final = SequenceSettings(decay=0.4, window=5)
_DECAY_TARGET = 1.5


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """Three views of one window, each step of which has a random priority."""
    with filled_store(folder / "store", _WINDOW, spec(np.float32)) as store:
        set_priorities(store, _WINDOW)
        with (
            store.replay(_WINDOW, "uniform", fields=FIELDS, private=True) as uniform,
            store.replay(_WINDOW, "per", fields=FIELDS, private=True) as per,
            store.replay(_WINDOW, "pser", sequences=DECAY, fields=FIELDS, private=True) as pser,
        ):
            for view in (uniform, per, pser):
                touch_pages(view)
            samples = alternate(
                {
                    "uniform": microseconds(lambda: uniform.sample(BATCH)),
                    "draw": microseconds(lambda: per.sample(BATCH)),
                    "PER": errors_back_work(per),
                    "PSER": errors_back_work(pser),
                },
                effort.repeats(100),
            )
            details = {"window": _WINDOW, "batch": BATCH, "row_bytes": row_bytes(per)}
    return [
        Figure.of(
            "draw a batch by priority",
            "µs",
            samples["draw"],
            samples["uniform"],
            "a uniform draw",
            details=details,
        ),
        Figure.of(
            "feed errors back, PSER",
            "µs",
            samples["PSER"],
            samples["PER"],
            "PER's feed-back",
            target=_DECAY_TARGET,
            details=details | {"decay": DECAY.decay, "reach": DECAY.reach},
        ),
    ]


def errors_back_work(view: ReplayView) -> Work:
    """Work that gives the time of a feed-back of random errors of a newly drawn batch."""
    draw = np.random.default_rng(0)
    given = draw.uniform(*PRIORITIES, (16, BATCH)).astype(np.float32)

    def block() -> float:
        taken = 0
        for errors in given:
            batch = view.sample(BATCH)
            start = time.perf_counter_ns()
            view.feed_back(batch, priority_error=errors)
            taken += time.perf_counter_ns() - start
        return taken / len(given) / 1e3

    return block
