"""The kernels between matrix products against torch's own functions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from training.mlp_kernels import activate, activation_gradient, adam, column_sums


def _rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize("linked", [False, True])
def test_activation_and_its_gradient(linked: bool) -> None:
    sums, bias, before, upstream = _rows(7, 5) * 3, _rows(5), _rows(7, 5) + 1, _rows(7, 5) - 1
    inner = (sums + bias).requires_grad_()
    expected = torch.nn.functional.softsign(inner) + (before if linked else 0)
    outputs, slope, gradient = (np.empty((7, 5), np.float32) for _ in range(3))
    bias_gradient = np.empty(5, np.float32)
    activate(sums.numpy(), bias.numpy(), linked, before.numpy(), outputs, slope)
    activation_gradient(upstream.numpy(), slope, gradient, bias_gradient)
    (wanted,) = torch.autograd.grad(expected, inner, upstream)
    assert np.allclose(outputs, expected.detach().numpy(), atol=1e-6)
    assert np.allclose(gradient, wanted.numpy(), atol=1e-6)
    assert np.allclose(bias_gradient, wanted.sum(0).numpy(), atol=1e-6)


def test_column_sums() -> None:
    values, sums = _rows(9, 4).numpy(), np.full(4, 7, np.float32)
    column_sums(values, sums)
    assert np.allclose(sums, values.sum(0), atol=1e-6)


def test_adam_is_torch_s_with_clipping_and_decay() -> None:
    twins = [torch.nn.Parameter(_rows(6, 3)), torch.nn.Parameter(_rows(4))]
    flat = [twin.detach().clone().view(-1).numpy() for twin in twins]
    state = [[np.zeros_like(each) for each in flat] for _ in range(2)]
    steps = tuple(np.zeros(1, np.float32) for _ in flat)
    optimizer = torch.optim.Adam(twins, lr=1e-2, eps=1e-7, weight_decay=0.1)
    for i in range(20):
        gradient = _rows(22) * (1 + i)
        twins[0].grad = 0.5 * gradient[:18].view(6, 3)
        twins[1].grad = 0.5 * gradient[18:]
        optimizer.step()
        adam(
            tuple(flat), tuple(state[0]), tuple(state[1]), steps, gradient.numpy(), 0.5, 1e-2,
            (0.9, 0.999, 1e-7, 0.1),
        )  # fmt: skip
    for twin, mine in zip(twins, flat, strict=True):
        assert np.allclose(mine, twin.detach().view(-1).numpy(), atol=2e-6)
    assert [step.tolist() for step in steps] == [[20.0], [20.0]]
