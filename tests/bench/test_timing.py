from __future__ import annotations

import pytest

from bench import timing


def test_works_take_turns_and_the_first_turns_do_not_count() -> None:
    order: list[str] = []
    numbers = iter(range(100))

    def work(name: str) -> float:
        order.append(name)
        return float(next(numbers))

    samples = timing.alternate({"a": lambda: work("a"), "b": lambda: work("b")}, 2, warm=1)
    assert order == ["a", "b"] * 3
    assert samples == {"a": [2.0, 4.0], "b": [3.0, 5.0]}


class Clock:
    """A clock that moves only when somebody works."""

    def __init__(self) -> None:
        self.now = 0

    def work(self, nanoseconds: int) -> None:
        self.now += nanoseconds

    def perf_counter_ns(self) -> int:
        return self.now

    def perf_counter(self) -> float:
        return self.now / 1e9


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timing, "time", made)
    return made


def test_microseconds_are_of_one_call_and_a_block_takes_2_ms(clock: Clock) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        clock.work(4_000)

    block = timing.microseconds(call)
    calls.clear()
    assert block() == pytest.approx(4.0)
    assert len(calls) == 500


def test_a_slow_first_call_does_not_set_the_block(clock: Clock) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        clock.work(10**9 if len(calls) == 1 else 1_000_000)

    block = timing.microseconds(call)
    calls.extend([1, 1])
    before = len(calls)
    assert block() == pytest.approx(1000.0)
    assert len(calls) - before == 2


def test_a_rate_is_units_over_seconds(clock: Clock) -> None:
    def work() -> int:
        clock.work(500_000_000)
        return 40

    assert timing.per_second(work)() == pytest.approx(80.0)
