"""Densities and ratios of rows against those of whole batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from training.gaussian import importance_ratio, log_density
from training.ratio_kernels import is_near, log_density_of, log_normaliser, ratio_of
from training.refer import near_mask


def test_rows_are_those_of_whole_batches():
    draw = torch.Generator().manual_seed(0)
    action, mean = torch.randn(2, 9, 3, generator=draw)
    stdev = torch.rand(3, generator=draw) + 0.3
    wide = np.concatenate([np.zeros((9, 2), np.float32), mean.numpy()], axis=1)
    density = log_density(action, mean, stdev)
    behaviour = density + torch.linspace(-9.0, 9.0, 9)
    ratios = importance_ratio(density, behaviour)
    normaliser = log_normaliser(stdev.numpy())
    for row in range(9):
        found = log_density_of(row, action.numpy(), wide, 2, stdev.numpy(), normaliser)
        assert found == pytest.approx(float(density[row]), rel=1e-6)
        ratio = ratio_of(np.float32(found) - behaviour.numpy()[row])
        assert ratio == pytest.approx(float(ratios[row]), rel=1e-5)
    assert float(ratios.max() / ratios.min()) > 1e6  # both ends are clipped


@pytest.mark.parametrize("ratio", [0.24, 0.25, 1.0, 4.0, 4.1])
def test_ties_are_near(ratio):
    wanted = bool(near_mask(torch.tensor(ratio), torch.tensor(4.0)))
    assert is_near(np.float32(ratio), np.float32(4.0)) == wanted == (0.25 <= ratio <= 4.0)
