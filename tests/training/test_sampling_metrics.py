from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from storage.replay.schemes.priority_settings import PrioritySettings
from training.sampling_metrics import sampling_metrics


def test_numbers_of_a_draw() -> None:
    weights = np.array([0.2, 0.4, 0.6, 0.8, 1.0], np.float32)
    errors = np.array([5, 1, 0, 0, 4], np.float32)
    settings = PrioritySettings(beta=0.4, beta_final=1.0, beta_draws=10)
    found = sampling_metrics(settings, 6, weights, errors)
    assert found == pytest.approx(
        {
            "sampling_exponent": 0.4 + 0.6 * 5 / 10,
            "sampling_weight_q05": 0.24,
            "sampling_weight_q50": 0.6,
            "sampling_weight_q95": 0.96,
            "effective_weight_fraction": 9 / (5 * 2.2),
            "priority_error": 2.0,
        }
    )


def test_the_metrics_page_explains_them() -> None:
    text = (Path(__file__).parents[2] / "docs/metrics.md").read_text(encoding="utf-8")
    ones = np.ones(3, np.float32)
    assert sampling_metrics(PrioritySettings(), 1, ones, ones).keys() <= set(
        re.findall(r"`(\w+)`", text)
    )
