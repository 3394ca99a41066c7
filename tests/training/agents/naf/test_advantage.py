from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.training.agents.naf.steps import naive_q, naive_slopes
from training.agents.naf.advantage import quadratic_advantage
from training.agents.naf.network import NafNetwork
from training.gaussian import stdev_from_raw

VECTORS = {
    "smooth": ([[0.5, 0], [0.4, 1.2071067812]], [[0.25, 0.2], [0.2, 1.6171067812]], -0.1821383476),
    "exp": ([[1, 0], [0.4, 2.7182818285]], [[1, 0.4], [0.4, 7.5490560989]], -0.9436320124),
}
"""L, P = L L^T and the advantage at a = (0.5, -0.2), m = (0.1, 0.3) and raw numbers 0, 0.4, 1."""


def net(size: int, **settings) -> NafNetwork:
    generator = torch.Generator().manual_seed(0)
    return NafNetwork(3, size, hidden=(8,), generator=generator, **settings).double()


def giving(outputs: list[float], size: int, **settings) -> NafNetwork:
    """A network whose head gives these numbers at every observation."""
    network = net(size, **settings)
    with torch.no_grad():
        network.head.weight.zero_()
        network.head.bias.copy_(torch.tensor(outputs, dtype=torch.float64))
    return network


@pytest.mark.parametrize("diagonal", VECTORS)
def test_reference_vectors_come_out_of_the_network(diagonal):
    lower, product, advantage = VECTORS[diagonal]
    network = giving([7.0, 0.0, 0.4, 1.0, 0.1, 0.3], 2, diagonal=diagonal)
    output = network(torch.zeros(1, 3, dtype=torch.float64))
    assert output.value.tolist() == [7.0]
    assert output.mean[0].tolist() == pytest.approx([0.1, 0.3], abs=1e-12)
    assert output.lower[0].detach().numpy() == pytest.approx(np.array(lower), abs=5e-11)
    assert (output.lower[0] @ output.lower[0].T).detach().numpy() == pytest.approx(
        np.array(product), abs=5e-11
    )
    offset = torch.tensor([[0.5, -0.2]], dtype=torch.float64) - output.mean
    found = quadratic_advantage(output.lower, offset)
    assert found.item() == pytest.approx(advantage, abs=5e-11)


def test_the_greatest_q_is_at_the_mean():
    draw = torch.Generator().manual_seed(1)
    lower = torch.randn(50, 4, 4, generator=draw).tril()
    assert not quadratic_advantage(lower, torch.zeros(50, 4)).any()
    assert (quadratic_advantage(lower, torch.randn(50, 4, generator=draw)) < 0).all()


@pytest.mark.parametrize("diagonal", ["smooth", "exp"])
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_q_and_its_slopes_are_those_of_a_naive_twin(diagonal, bounded, size):
    draw = np.random.default_rng(size)
    count = 1 + size * (size + 1) // 2 + size
    for _ in range(5):
        outputs, action = draw.normal(size=count), draw.normal(size=size)
        network = giving(outputs.tolist(), size, diagonal=diagonal, bounded_mean=bounded)
        given = network(torch.zeros(1, 3, dtype=torch.float64))
        offset = torch.from_numpy(action)[None] - given.mean
        q = given.value + quadratic_advantage(given.lower, offset)
        assert q.item() == pytest.approx(naive_q(outputs, action, diagonal, bounded), rel=1e-12)
        slopes = torch.autograd.grad(q.sum(), network.head.bias)[0].numpy()
        assert slopes == pytest.approx(naive_slopes(outputs, action, diagonal, bounded), rel=1e-9)
        numeric = [
            (
                naive_q(outputs + step, action, diagonal, bounded)
                - naive_q(outputs - step, action, diagonal, bounded)
            )
            / 2e-6
            for step in 1e-6 * np.eye(count)
        ]
        assert slopes == pytest.approx(np.array(numeric), rel=1e-5, abs=1e-7)


def test_off_diagonal_numbers_may_be_any():
    """Large ones overflow the diagonal's exponential only if it is taken of them, too."""
    network = giving([0.0, 0.0, 200.0, 0.0, 0.0, 0.0], 2, diagonal="exp")
    output = network(torch.zeros(1, 3, dtype=torch.float64))
    assert output.lower[0].tolist() == [[1.0, 0.0], [200.0, 1.0]]
    output.lower.sum().backward()
    assert torch.isfinite(network.head.bias.grad).all()


def test_the_smooth_map_is_that_of_standard_deviations():
    raw = torch.linspace(-5, 5, 11, dtype=torch.float64)
    assert torch.allclose(stdev_from_raw(raw), 0.5 * (raw + (1 + raw**2).sqrt()), rtol=1e-12)
