"""Activations of kernels against those of networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from training.acting.activation_kernels import ACTIVATION_CODES, activated
from training.network import ACTIVATIONS


def test_every_activation_has_a_number():
    assert set(ACTIVATION_CODES) == set(ACTIVATIONS)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_numbers_are_those_of_the_network(name):
    sums = torch.tensor([-3.0, -0.5, -0.0, 0.0, 1e-30, 0.7, 40.0, float("inf"), float("nan")])
    wanted = ACTIVATIONS[name](sums).numpy()
    found = [activated(np.float32(number), ACTIVATION_CODES[name]) for number in sums.numpy()]
    assert np.array(found, np.float32) == pytest.approx(wanted, rel=1e-6, abs=0, nan_ok=True)
