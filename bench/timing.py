"""Medians of many short calls."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

__all__ = ["median_microseconds", "per_second"]


def median_microseconds(
    call: Callable[[], Any], *, repeats: int = 300, inner: int = 1, warm: int = 20
) -> float:
    """Median time of one `call`, over `repeats` timings of `inner` calls each, after `warm`."""
    for _ in range(warm):
        call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        for _ in range(inner):
            call()
        times.append((time.perf_counter_ns() - start) / inner)
    return statistics.median(times) / 1e3


def per_second(work: Callable[[], int], *, repeats: int = 5, warm: int = 1) -> float:
    """Median rate of `work`, which gives how many units it did."""
    for _ in range(warm):
        work()
    rates = []
    for _ in range(repeats):
        start = time.perf_counter()
        done = work()
        rates.append(done / (time.perf_counter() - start))
    return statistics.median(rates)
