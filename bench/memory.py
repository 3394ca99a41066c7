"""How much memory there is, and how much of it a replay view takes."""

from __future__ import annotations

import tracemalloc

from bench.own_buffer import FIELDS
from storage.store import Store

__all__ = ["available_bytes", "bytes_a_step"]


def available_bytes() -> int:
    """What may be taken without swapping, by the kernel's estimate."""
    with open("/proc/meminfo", encoding="ascii") as facts:
        for line in facts:
            if line.startswith("MemAvailable"):
                return 1024 * int(line.split()[1])
    raise OSError("/proc/meminfo has no MemAvailable")


def bytes_a_step(store: Store, window: int, scheme: str) -> float:
    """What opening a view of `window` steps allocates and keeps, for each of its steps.

    Tree, ring and episode table; not the maps of the store and of the overlay, whose pages belong
    to files, and no batch.
    """
    store.replay(window, scheme, fields=FIELDS).close()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        with store.replay(window, scheme, fields=FIELDS) as view:
            after, _ = tracemalloc.get_traced_memory()
            return (after - before) / view.n_steps
    finally:
        tracemalloc.stop()
