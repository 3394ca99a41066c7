"""Drawing and feeding back: microseconds a batch of 256 steps out of a full window."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import storage
from bench.appending import append_episode
from bench.bare_gather import BareGather
from bench.cheetah import BATCH, EPISODE, Steps, spec
from bench.effort import Effort
from bench.figure import Figure
from bench.timing import Work, alternate, microseconds
from storage.environment_spec import EnvironmentSpec
from storage.replay import ReplayView
from storage.replay.batch import FIELDS
from storage.store import Store
from training.agents.vracer.agent import VRacer

__all__ = [
    "feed_back_work",
    "filled_store",
    "gather_work",
    "measure",
    "row_bytes",
    "touch_pages",
]

_WINDOW = 2**18


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """A draw of all fields, one of V-RACER's, and a feed-back, beside a bare gather."""
    with (
        filled_store(folder / "store", _WINDOW) as store,
        store.replay(window=_WINDOW, seed=0) as view,
        store.replay(window=_WINDOW, seed=0, fields=VRacer.fields, private=True) as learning,
    ):
        touch_pages(view)
        touch_pages(learning)
        widths = row_bytes(view), row_bytes(learning)
        samples = alternate(
            {
                "draw": microseconds(lambda: view.sample(BATCH)),
                "draw some": microseconds(lambda: learning.sample(BATCH)),
                "feed back": feed_back_work(view),
                "rows": gather_work(widths[0], view.n_steps),
                "some rows": gather_work(widths[1], view.n_steps),
            },
            effort.repeats(200),
        )
        steps = view.n_steps
    rows = (
        ("draw a batch", "draw", "rows", widths[0]),
        ("draw a batch, V-RACER's fields", "draw some", "some rows", widths[1]),
        ("feed a batch back", "feed back", "rows", widths[0]),
    )
    return [
        Figure.of(
            name,
            "µs",
            samples[value],
            samples[limit],
            "gathering as many packed rows",
            details={"window": steps, "batch": BATCH, "row_bytes": width},
        )
        for name, value, limit, width in rows
    ]


def filled_store(path: Path, steps: int, spaces: EnvironmentSpec | None = None) -> Store:
    """A new store of at least so many made-up steps, in whole episodes."""
    store = storage.create(path, spaces or spec())
    made_up = Steps.random(dtype=store.schema.column("observation").dtype.type)
    with store.writer(lanes=1, window=steps) as writer:
        for _ in range(-(-steps // EPISODE)):
            append_episode(writer, made_up)
    store.refresh()
    return store


def touch_pages(view: ReplayView) -> None:
    """Draws so often that hardly a page of the view's maps is touched for the first time later."""
    for _ in range(view.n_steps >> 13):
        view.sample(min(1024, view.n_steps))


def row_bytes(view: ReplayView) -> int:
    """Bytes of one step that a batch of the view gathers."""
    batch = view.sample(1)
    return sum(getattr(batch, name).nbytes for name in FIELDS if batch.has(name))


def feed_back_work(view: ReplayView) -> Work:
    """Work that gives the time of a feed-back, whose values are all new: sweeps go far."""
    view.set_targets(discount=0.995, reward_scale=1.0)
    draw = np.random.default_rng(0)
    turns = range(16)

    def block() -> float:
        taken = 0
        for _ in turns:
            batch = view.sample(BATCH)
            ratio = draw.uniform(0.5, 2, BATCH).astype(np.float32)
            value = draw.standard_normal(BATCH, np.float32)
            start = time.perf_counter_ns()
            view.feed_back(batch, importance_ratio=ratio, value=value, far_bound=5.0)
            taken += time.perf_counter_ns() - start
        return taken / len(turns) / 1e3

    return block


def gather_work(width: int, rows: int) -> Work:
    """A bare gather of `BATCH` packed rows out of as many as the window has."""
    gather = BareGather(rows, width)
    return microseconds(lambda: gather.draw(BATCH), calls=100)
