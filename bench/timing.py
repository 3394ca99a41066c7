"""Samples of several works, taken in turn."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["Work", "alternate", "calls_in_a_block", "microseconds", "per_second"]

Work = Callable[[], float]
"""Does a stretch of work; gives one sample: microseconds of one unit, or units a second."""

Sample = TypeVar("Sample")

_BLOCK_NS = 2_000_000
_LONGEST_TRIAL = 1 << 16
_COLD_CALLS = 3


def alternate(
    works: Mapping[str, Callable[[], Sample]], repeats: int, *, warm: int = 2
) -> dict[str, list[Sample]]:
    """Samples of each work, taken in turn (A B C A B C …), after `warm` turns that do not count."""
    samples: dict[str, list[Sample]] = {name: [] for name in works}
    gc.collect()
    for turn in range(warm + repeats):
        for name, work in works.items():
            sample = work()
            if turn >= warm:
                samples[name].append(sample)
    return samples


def microseconds(call: Callable[[], Any], *, calls: int | None = None) -> Work:
    """Work that gives the mean time of one call, over so many that they take some 2 ms."""
    count = calls_in_a_block(call) if calls is None else calls

    def block() -> float:
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        return (time.perf_counter_ns() - start) / count / 1e3

    return block


def per_second(work: Callable[[], int]) -> Work:
    """Work that gives a rate; `work` says how many units it did."""

    def block() -> float:
        start = time.perf_counter()
        done = work()
        return done / (time.perf_counter() - start)

    return block


def calls_in_a_block(call: Callable[[], Any]) -> int:
    """How many calls take some 2 ms; the first ones, which may compile, do not count."""
    for _ in range(_COLD_CALLS):
        call()
    count = 1
    while count < _LONGEST_TRIAL:
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        taken = time.perf_counter_ns() - start
        if taken >= _BLOCK_NS // 4:
            return max(1, round(count * _BLOCK_NS / taken))
        count *= 2
    return count
