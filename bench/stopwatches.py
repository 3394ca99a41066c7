"""Stopwatches around methods of a running loop's objects."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.inside import replace_method

__all__ = ["Stopwatches"]


class Stopwatches:
    """Times of nested parts, each without what runs inside it in parts of its own."""

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self.taken: dict[str, int] = {}
        """Nanoseconds so far, by part."""
        self.calls: dict[str, int] = {}
        self._clock = clock
        self._inner = [0]

    def put_on(self, owner: Any, name: str, part: str) -> None:
        """Times every call of an instance's method from now on."""
        method = getattr(owner, name)
        self.taken.setdefault(part, 0)
        self.calls.setdefault(part, 0)
        taken, calls, inner, clock = self.taken, self.calls, self._inner, self._clock

        def timed(*arguments: Any, **keywords: Any) -> Any:
            inner.append(0)
            start = clock()
            try:
                return method(*arguments, **keywords)
            finally:
                whole = clock() - start
                taken[part] += whole - inner.pop()
                calls[part] += 1
                inner[-1] += whole

        replace_method(owner, name, timed)
