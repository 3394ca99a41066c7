from __future__ import annotations

import pytest

from bench.stopwatches import Stopwatches


class Work:
    """Two methods, one of which calls the other, on a clock that only they move."""

    def __init__(self) -> None:
        self.now = 0

    def clock(self) -> int:
        return self.now

    def inner(self, fails: bool = False) -> int:
        self.now += 30
        if fails:
            raise ValueError("inner failed")
        return 7

    def outer(self) -> int:
        self.now += 5
        self.inner()
        self.inner()
        self.now += 10
        return 8


def test_nested_parts_are_counted_once() -> None:
    work = Work()
    watches = Stopwatches(work.clock)
    watches.put_on(work, "inner", "inside")
    watches.put_on(work, "outer", "outside")
    assert work.outer() == 8
    assert work.inner() == 7
    assert watches.taken == {"inside": 90, "outside": 15}
    assert watches.calls == {"inside": 3, "outside": 1}


def test_a_part_that_fails_is_counted_and_its_error_goes_on() -> None:
    work = Work()
    watches = Stopwatches(work.clock)
    watches.put_on(work, "inner", "inside")
    with pytest.raises(ValueError, match="inner failed"):
        work.inner(fails=True)
    work.inner()
    assert watches.taken == {"inside": 60}


def test_two_methods_may_be_one_part() -> None:
    work = Work()
    watches = Stopwatches(work.clock)
    watches.put_on(work, "inner", "all")
    watches.put_on(work, "outer", "all")
    work.outer()
    assert watches.taken == {"all": 75}
