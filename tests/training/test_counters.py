from __future__ import annotations

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
