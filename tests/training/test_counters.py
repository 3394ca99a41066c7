from __future__ import annotations

from fractions import Fraction

import pytest

from training.counters import Counters


def test_updates_due_owe_whole_updates_only():
    counters = Counters(environment_steps=100)
    assert counters.due() == 0
    counters.start(0.25)
    counters.environment_steps = 103
    assert counters.due() == 0
    counters.environment_steps = 109
    assert counters.due() == 2
    counters.updates = 2
    counters.start(2.0)
    counters.environment_steps = 110
    assert counters.due() == 2


@pytest.mark.parametrize("ratio", ["0.29", "0.07", "1/3", "2.5", "0.1", "1.1", "7"])
def test_updates_due_are_those_of_the_ratio_as_it_was_written(ratio):
    exact = Fraction(ratio)
    counters = Counters()
    counters.start(float(exact))
    for steps in range(0, 1_000_000, 97):
        counters.environment_steps = steps
        assert counters.due() == steps * exact.numerator // exact.denominator
