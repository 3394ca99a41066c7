"""The kernels between matrix products against torch's own functions."""

from __future__ import annotations

import numpy as np
import torch

from training.mlp_kernels import (
    activate,
    adam,
    add,
    add_row,
    column_sums,
    gradient_in_place,
    linked_gradient,
)


def _rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def test_activation_and_its_gradient() -> None:
    sums, bias, upstream = _rows(7, 5) * 3, _rows(5), _rows(7, 5) - 1
    inner = (sums + bias).requires_grad_()
    expected = torch.nn.functional.softsign(inner)
    (wanted,) = torch.autograd.grad(expected, inner, upstream)
    hidden, gradient, column = sums.numpy().copy(), upstream.numpy().copy(), np.empty(5, np.float32)
    activate(hidden, bias.numpy())
    assert np.allclose(hidden, expected.detach().numpy(), atol=1e-6)
    gradient_in_place(gradient, hidden, column)
    assert np.allclose(gradient, wanted.numpy(), atol=1e-6)
    assert np.allclose(column, wanted.sum(0).numpy(), atol=1e-6)


def test_gradient_through_a_linked_layer() -> None:
    inner, before, upstream = _rows(7, 5).requires_grad_(), _rows(7, 5) + 1, _rows(7, 5) - 1
    activated = torch.nn.functional.softsign(inner)
    (wanted,) = torch.autograd.grad(activated, inner, upstream)
    outputs, given = activated.detach().numpy().copy(), upstream.numpy().copy()
    add(outputs, before.numpy())
    assert np.array_equal(outputs, (activated.detach() + before).numpy())
    gradient, column = np.empty((7, 5), np.float32), np.empty(5, np.float32)
    linked_gradient(given, outputs, before.numpy(), gradient, column)
    assert np.array_equal(given, upstream.numpy())
    assert np.allclose(gradient, wanted.numpy(), atol=1e-5)
    assert np.allclose(column, wanted.sum(0).numpy(), atol=1e-5)


def test_a_row_is_added_to_every_row() -> None:
    values, row = _rows(9, 4), _rows(4)
    given = values.numpy().copy()
    add_row(given, row.numpy())
    assert np.array_equal(given, (values + row).numpy())


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
