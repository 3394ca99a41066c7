"""Drawing: microseconds a batch of 256 steps out of a full window, uniform and without repeats."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import storage
from bench.appending import append_episode
from bench.cheetah import BATCH, EPISODE, Steps, spec
from bench.figure import Figure
from bench.timing import median_microseconds
from storage.replay import ReplayView

__all__ = ["measure"]

_WINDOW = 2**18


def measure(folder: Path) -> list[Figure]:
    store = storage.create(folder / "store", spec())
    steps = Steps.random()
    with store.writer(lanes=1, window=_WINDOW) as writer:
        for _ in range(-(-_WINDOW // EPISODE)):
            append_episode(writer, steps)
    store.refresh()
    view = store.replay(window=_WINDOW, seed=0)
    value = median_microseconds(lambda: view.sample(BATCH), repeats=2000)
    feed_back = _feed_back(view)
    details = {"window": view.n_steps, "batch": BATCH, "row_bytes": store.schema.row_bytes}
    limit = _gather(store.schema.row_bytes, view.n_steps)
    view.close()
    store.close()
    name = "gathering as many packed rows"
    return [
        Figure("draw a batch", "µs", value, limit, name, details),
        Figure("feed a batch back", "µs", feed_back, limit, name, details),
    ]


def _feed_back(view: ReplayView) -> float:
    view.set_targets(discount=0.995, reward_scale=1.0)
    draw = np.random.default_rng(0)
    batch = view.sample(BATCH)
    ratio = draw.uniform(0.5, 2, BATCH).astype(np.float32)
    value = draw.normal(size=BATCH).astype(np.float32)

    def again() -> None:
        view.feed_back(batch, importance_ratio=ratio, value=value, far_bound=5.0)

    def draw_and_feed() -> None:
        nonlocal batch
        batch = view.sample(BATCH)
        draw.standard_normal(BATCH, np.float32, out=value)
        again()

    both = median_microseconds(draw_and_feed, repeats=500)
    alone = median_microseconds(lambda: view.sample(BATCH), repeats=500)
    normal = median_microseconds(lambda: draw.standard_normal(BATCH, np.float32, out=value))
    return both - alone - normal


def _gather(row_bytes: int, rows: int) -> float:
    """One np.take of `BATCH` packed rows at random places of an array as large as the window."""
    packed = np.zeros((rows, row_bytes), np.uint8)
    packed += 1
    out = np.empty((BATCH, row_bytes), np.uint8)
    places = np.random.default_rng(0).integers(0, rows, (2000, BATCH))
    turn = iter(range(10**9))
    return median_microseconds(
        lambda: np.take(packed, places[next(turn) % 2000], axis=0, out=out, mode="clip"),
        repeats=2000,
    )
