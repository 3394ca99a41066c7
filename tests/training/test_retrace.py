"""Retrace with an advantage (test vector E.2), by the value targets of the replay view."""

from __future__ import annotations

import numpy as np
import pytest

from storage.replay.targets import value_targets

DISCOUNT = 0.9
REWARDS = np.array([1.0, 0.5, -1.0])
VALUES = np.array([1.0, 2.0, 0.5])
RATIOS = np.array([0.8, 1.6, 0.5])
ADVANTAGES = np.array([0.1, -0.2, 0.3])


def action_value_targets(advantages: np.ndarray) -> np.ndarray:
    """Q_ret of ReF-ER eq. 6: eq. 7 subtracts Q = V + A, so the sweep sees rewards less A."""
    targets = value_targets(REWARDS - advantages, RATIOS, VALUES, 0.0, DISCOUNT)
    return REWARDS + DISCOUNT * np.append(targets[1:], 0.0)


def test_retrace_with_an_advantage():
    assert action_value_targets(ADVANTAGES) == pytest.approx([1.306, 0.14, -1.0], abs=1e-12)


def test_retrace_equals_its_definition():
    expected = np.empty(3)
    for t in (2, 1, 0):
        expected[t] = REWARDS[t]
        if t < 2:
            correction = expected[t + 1] - VALUES[t + 1] - ADVANTAGES[t + 1]
            expected[t] += DISCOUNT * (VALUES[t + 1] + min(1.0, RATIOS[t + 1]) * correction)
    assert action_value_targets(ADVANTAGES) == pytest.approx(expected, abs=1e-12)


def test_without_advantage_it_is_v_racers():
    assert action_value_targets(np.zeros(3)) == pytest.approx([1.2475, 0.275, -1.0], abs=1e-12)
