"""Updating: microseconds one V-RACER update of 256 steps takes, forward, backward and Adam."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import torch

from bench.cheetah import ACTIONS, BATCH, HIDDEN, OBSERVATIONS
from bench.effort import Effort
from bench.figure import Figure
from bench.products import layer_sizes, update_products
from bench.sampling import filled_store
from bench.timing import Work, alternate, microseconds
from bench.update_setup import engine_names, engine_update
from storage.store import Store

__all__ = ["engine_works", "measure"]

_TARGETS: Final = {"compiled": 2.6, "compiled, beside eager": 1 / 2.4}


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """One figure an engine beside the bare matrix products, and one beside the eager engine."""
    with filled_store(folder / "store", 16 * BATCH) as store:
        works = engine_works(store, BATCH, HIDDEN)
    samples = alternate(works, effort.repeats(200), warm=5)
    products = samples.pop("products")
    engines, eager = list(samples), samples["eager"]
    rows = [(name, "", products, "bare matrix products") for name in engines]
    rows += [
        (name, ", beside eager", eager, "the eager engine") for name in engines if name != "eager"
    ]
    return [
        Figure.of(
            f"update, {name}{beside}",
            "µs",
            samples[name],
            limit,
            title,
            target=_TARGETS.get(f"{name}{beside}"),
            details={"engine": name, "batch": BATCH, "hidden": [HIDDEN, HIDDEN]},
        )
        for name, beside, limit, title in rows
    ]


def engine_works(store: Store, batch: int, width: int) -> dict[str, Work]:
    """An update of each engine, and "products", for two hidden layers of that width."""
    torch.compiler.reset()  # torch refuses a ninth size in one process
    works: dict[str, Work] = {}
    for name in engine_names():
        works[name] = microseconds(engine_update(name, store, batch, width))
    sizes = layer_sizes(OBSERVATIONS, ACTIONS, (width, width))
    return works | {"products": microseconds(update_products(sizes, batch))}
