"""Adam's kernel against torch's own optimizer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from storage.kernel import Floats32
from training.engines.adam_kernels import adam, gradient_norm
from training.engines.matrix_kernels import padded


def _rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def _padded(values: torch.Tensor) -> Floats32:
    matrix = padded(*values.shape)
    matrix[: values.shape[0], : values.shape[1]] = values.numpy()
    return matrix


def test_adam_is_torch_s_with_clipping_and_decay():
    twins = [torch.nn.Parameter(_rows(6, 3)), torch.nn.Parameter(_rows(1, 4))]
    mine = tuple(twin.detach().clone().numpy() for twin in twins)
    averages, squares = (tuple(np.zeros_like(each) for each in mine) for _ in range(2))
    steps = tuple(np.zeros((1, 1), np.float32) for _ in mine)
    optimizer = torch.optim.Adam(twins, lr=1e-2, eps=1e-7, weight_decay=0.1)
    for i in range(20):
        gradients = [_rows(6, 3) * (1 + i), _rows(1, 4) * (1 + i)]
        for twin, gradient in zip(twins, gradients, strict=True):
            twin.grad = 0.5 * gradient
        optimizer.step()
        given = tuple(_padded(gradient) for gradient in gradients)
        adam(mine, averages, squares, steps, given, 0.5, 1e-2, (0.9, 0.999, 1e-7, 0.1))
    for twin, each in zip(twins, mine, strict=True):
        assert np.allclose(each, twin.detach().numpy(), atol=2e-6)
    assert [step.tolist() for step in steps] == [[[20.0]], [[20.0]]]


def test_the_norm_leaves_the_padding_out():
    gradients = _rows(6, 33), _rows(1, 4)
    matrices = tuple(_padded(gradient) for gradient in gradients)
    for matrix in matrices:
        matrix[-1, :] = 1e6
    parameters = tuple(gradient.numpy() for gradient in gradients)
    wanted = float(torch.cat([gradient.flatten() for gradient in gradients]).norm())
    assert gradient_norm(parameters, matrices) == pytest.approx(wanted, rel=1e-6)
