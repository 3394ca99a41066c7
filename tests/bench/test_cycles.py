from __future__ import annotations

import numpy as np
import pytest

from bench.bare_gather import BareGather
from bench.cycles import Cycle, cycles
from bench.transitions import Floats32


class Recording(BareGather):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__(64, 8)
        self.drawn: list[int] = []
        self.errors: list[Floats32] = []

    def draw(self, size: int) -> np.ndarray:
        self.drawn.append(size)
        return super().draw(size)

    def update(self, drawn: object, errors: Floats32) -> None:
        self.errors.append(errors)


def test_every_draw_is_followed_by_an_update_with_other_errors() -> None:
    buffer = Recording()
    work = cycles(buffer, 16)
    del buffer.drawn[:], buffer.errors[:]
    cycle = work()
    assert set(buffer.drawn) == {16}
    assert len(buffer.drawn) == len(buffer.errors) > 10
    first, second = buffer.errors[:2]
    assert first.dtype == np.float32
    assert first.shape == (16,)
    assert first.min() >= 0.01
    assert first.max() <= 1
    assert not np.array_equal(first, second)
    assert 0 < cycle.update < cycle.both
    assert 0 < cycle.draw < cycle.both


def test_both_is_the_sum() -> None:
    assert Cycle(draw=2.0, update=0.5).both == pytest.approx(2.5)
