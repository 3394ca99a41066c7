from __future__ import annotations

import math

import pytest
import torch

from training.gaussian import (
    divergence_from_behaviour,
    divergence_from_policy,
    importance_ratio,
    log_density,
    log_ratio,
    raw_from_stdev,
    stdev_from_raw,
)


def vector(*numbers: float, grad: bool = False) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64, requires_grad=grad)


@pytest.fixture
def behaviour() -> tuple[torch.Tensor, torch.Tensor]:
    return vector(0.0, 0.5), vector(0.4, 0.2)


@pytest.fixture
def policy() -> tuple[torch.Tensor, torch.Tensor]:
    return vector(0.1, 0.3, grad=True), vector(0.5, 0.1, grad=True)


ACTION = vector(0.2, 0.4)


def close(value: torch.Tensor, *expected: float) -> None:
    wanted = expected[0] if value.dim() == 0 else list(expected)
    assert value.tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_divergence_from_behaviour_and_its_gradients(behaviour, policy):
    divergence = divergence_from_behaviour(*behaviour, *policy)
    assert divergence.item() == pytest.approx(2.8699963708, abs=5e-11)
    of_mean, of_stdev = torch.autograd.grad(divergence, policy)
    close(of_mean, 0.4, -20)
    close(of_stdev, 0.64, -70)


def test_divergence_from_policy_and_its_gradients(behaviour, policy):
    divergence = divergence_from_policy(*behaviour, *policy)
    assert divergence.item() == pytest.approx(0.9075036292, abs=5e-11)
    of_mean, of_stdev = torch.autograd.grad(divergence, policy)
    close(of_mean, 0.625, -5)
    close(of_stdev, 1.125, -7.5)


@pytest.mark.parametrize("divergence", [divergence_from_behaviour, divergence_from_policy])
def test_divergences_agree_for_equal_stdev(divergence):
    stdev = vector(0.2)
    close(divergence(vector(0.3), stdev, vector(0.4), stdev), 0.125)


def test_importance_ratio(behaviour, policy):
    ratio = log_ratio(log_density(ACTION, *policy), log_density(ACTION, *behaviour))
    assert ratio.item() == pytest.approx(0.2000036292, abs=5e-11)
    assert ratio.exp().item() == pytest.approx(1.2214071909, abs=5e-11)


@pytest.mark.parametrize(("action", "expected"), [(0.3, 1.0), (0.1, 0.1353352832)])
def test_importance_ratio_of_shifted_means(action, expected):
    stdev = vector(0.2)
    log_policy = log_density(vector(action), vector(0.5), stdev)
    log_behaviour = log_density(vector(action), vector(0.1), stdev)
    assert importance_ratio(log_policy, log_behaviour).item() == pytest.approx(expected, abs=5e-11)


def test_importance_ratio_is_clamped_on_both_sides():
    ratio = importance_ratio(vector(100.0, -100.0), vector(0.0, 0.0))
    close(ratio, math.exp(7.0), math.exp(-7.0))


def test_log_density_gradients(policy):
    of_mean, of_stdev = torch.autograd.grad(log_density(ACTION, *policy), policy)
    close(of_mean, 0.4, 10)
    close(of_stdev, -1.92, 0)


def test_log_density_equals_torch_distributions(policy):
    mean, stdev = (tensor.detach() for tensor in policy)
    actions = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.distributions.Normal(mean, stdev).log_prob(actions).sum(-1)
    assert torch.allclose(log_density(actions, mean, stdev), expected, rtol=1e-12)


def test_stdev_map_and_inverse():
    raw = vector(-0.1118033989, -1.05, 0.0, -2.4)
    assert stdev_from_raw(raw).tolist() == pytest.approx([0.4472135955, 0.2, 0.5, 0.1], abs=5e-11)
    assert raw_from_stdev(math.sqrt(0.2)) == pytest.approx(-0.1118033989, abs=5e-11)


def test_stdev_stays_positive_far_below_zero():
    stdev = stdev_from_raw(torch.tensor([-1e6], dtype=torch.float32))
    assert stdev.item() == pytest.approx(0.25e-6, rel=1e-5)
