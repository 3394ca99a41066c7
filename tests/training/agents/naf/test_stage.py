"""NAF's loss against the table of ReF-ER's blended gradients, by autodiff at V, L and m."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.training.agents.naf.steps import schedule, transitions
from training.agents.naf.network import NafNetwork, NafOutput
from training.agents.naf.stage import NafStage, naf_loss
from training.batches.transition_batch import TransitionBatch
from training.engines.following import frozen_copy
from training.refer import PRESETS, ReferSettings

BETA, STDEV, DISCOUNT = 0.3, 0.2, 0.9
ACTION, MEAN = np.array([0.5, -0.2]), np.array([0.1, 0.3])
BEHAVIOUR = np.array([0.2, 0.1])
LOWER = np.array([[0.5, 0.0], [0.4, 1.2071067812]])
VALUE, NEXT, REWARD, SCALE = 0.7, 1.5, 0.6, 2.0
APART = ACTION - MEAN
ERROR = REWARD / SCALE + DISCOUNT * NEXT - (VALUE - 0.1821383476)
RATIO = float(
    np.exp((((ACTION - BEHAVIOUR) ** 2).sum() - (APART**2).sum()) / (2 * STDEV**2))
)  # exp(-2.875): far for any bound below 17.7
DIVERGENCE = float(((MEAN - BEHAVIOUR) ** 2).sum() / (2 * STDEV**2))


def tensor(numbers) -> torch.Tensor:
    return torch.from_numpy(np.array(numbers, np.float64))


def step(**other) -> TransitionBatch:
    mean, stdev = tensor([BEHAVIOUR]), tensor([[STDEV, STDEV]])
    action = tensor([ACTION])
    whole = TransitionBatch(
        observation=tensor([[0.0]]),
        next_observation=tensor([[0.0]]),
        raw_action=action,
        reward=tensor([REWARD]),
        continuing=tensor([1.0]),
        behaviour_mean=mean,
        behaviour_stdev=stdev,
        behaviour_log_density=torch.distributions.Normal(mean, stdev).log_prob(action).sum(-1),
        sampling_weight=tensor([1.0]),
    )
    return whole._replace(**other)


def ascent(settings: ReferSettings, bound: float, batch: TransitionBatch | None = None):
    """Directions of improvement at V, L and m, feedback and loss."""
    output = NafOutput(
        tensor([VALUE]).requires_grad_(),
        tensor([LOWER]).requires_grad_(),
        tensor([MEAN]).requires_grad_(),
        tensor([STDEV, STDEV]),
    )
    numbers = {"beta": BETA, "far_bound": bound, "reward_scale": SCALE, "learning_rate": 0.0}
    loss, feedback = naf_loss(
        output,
        tensor([NEXT]),
        batch or step(),
        {name: tensor(number) for name, number in numbers.items()},
        settings,
        DISCOUNT,
    )
    value, lower, mean = torch.autograd.grad(loss, output[:3])
    return -value[0].numpy(), -lower[0].tril().numpy(), -mean[0].numpy(), feedback, loss.item()


def check(found, value, lower, mean):
    assert found[0] == pytest.approx(value, abs=2e-9)
    assert found[1] == pytest.approx(lower, abs=2e-9)
    assert found[2] == pytest.approx(mean, abs=2e-9)


def plain():
    """e dQ/dV, e dQ/dL and e dQ/dm."""
    product = LOWER @ LOWER.T
    by_lower = np.tril(-np.outer(APART, APART) @ LOWER)
    return ERROR, ERROR * by_lower, ERROR * product @ APART


HOLD = -(1 - BETA) * (MEAN - BEHAVIOUR) / STDEV**2
"""-(1 - beta) dKL/dm."""
NOTHING = np.zeros((2, 2))


def test_the_step_is_what_the_table_is_read_at():
    assert pytest.approx(0.0564161395) == RATIO
    assert pytest.approx(0.625) == DIVERGENCE
    assert pytest.approx(1.1321383476) == ERROR


@pytest.mark.parametrize(
    ("rules", "bound", "improved", "blended"),
    [
        ("ER", 50.0, True, False),
        ("ER", 5.0, True, False),
        ("ReF-ER-1", 50.0, True, False),
        ("ReF-ER-1", 5.0, False, False),
        ("ReF-ER-2", 50.0, True, True),
        ("ReF-ER-2", 5.0, True, True),
        ("ReF-ER", 50.0, True, True),
        ("ReF-ER", 5.0, False, True),
    ],
)
def test_the_table_of_blended_gradients(rules, bound, improved, blended):
    """Only the mean's part is multiplied by beta, and only the mean is held; V and L are plain."""
    value, lower, mean = plain() if improved else (0.0, NOTHING, np.zeros(2))
    wanted = BETA * mean + HOLD if blended else mean
    found = ascent(PRESETS[rules], bound)
    check(found, value, lower, wanted)
    loss = (0.5 * ERROR**2 if improved else 0.0) + ((1 - BETA) * DIVERGENCE if blended else 0.0)
    assert found[4] == pytest.approx(loss)


def test_feedback_of_a_step():
    feedback = ascent(PRESETS["ReF-ER"], 5.0)[3]
    assert feedback["value"].item() == pytest.approx(VALUE - 0.1821383476)
    assert feedback["importance_ratio"].item() == pytest.approx(RATIO)
    assert feedback["divergence"].item() == pytest.approx(DIVERGENCE)
    assert feedback["priority_error"].item() == pytest.approx(ERROR)
    assert not any(tensor.requires_grad for tensor in feedback.values())


def test_both_directions_of_the_divergence_agree_at_equal_deviations_alone():
    settings = ReferSettings(divergence="policy_behaviour")
    here, there = (ascent(each, 5.0) for each in (PRESETS["ReF-ER"], settings))
    assert here[2] == pytest.approx(there[2])
    wide = tensor([[0.4, 0.4]])
    density = torch.distributions.Normal(tensor([BEHAVIOUR]), wide).log_prob(tensor([ACTION]))
    other = step(behaviour_stdev=wide, behaviour_log_density=density.sum(-1))
    assert ascent(PRESETS["ReF-ER"], 1.0, other)[2] == pytest.approx(HOLD)
    assert ascent(settings, 1.0, other)[2] == pytest.approx(HOLD / 4)


def test_after_a_terminal_step_there_is_no_next_value():
    found = ascent(PRESETS["ER"], 5.0, step(continuing=tensor([0.0])))
    assert found[0] == pytest.approx(REWARD / SCALE - VALUE + 0.1821383476)


def test_sampling_weight_multiplies_the_whole():
    once, twice = (
        ascent(PRESETS["ReF-ER"], 50.0, step(sampling_weight=tensor([weight])))
        for weight in (1.0, 2.5)
    )
    for a, b in zip(once[:3], twice[:3], strict=True):
        assert 2.5 * a == pytest.approx(b)


def networks(**settings) -> tuple[NafNetwork, NafNetwork]:
    generator = torch.Generator().manual_seed(0)
    network = NafNetwork(5, 3, hidden=(8, 8), generator=generator, **settings)
    target = frozen_copy(network)
    with torch.no_grad():
        for parameter in target.parameters():
            parameter.add_(0.1)
    return network, target


def test_the_stage_is_the_loss_at_the_networks_outputs():
    network, target = networks(diagonal="exp")
    batch, numbers = transitions(16, 5, 3), schedule()
    stage = NafStage(network, target, PRESETS["ReF-ER"], DISCOUNT)
    parameters = dict(network.named_parameters())
    loss, feedback = stage(parameters, batch, numbers)
    next_value = target(batch.next_observation).value
    assert not torch.allclose(next_value, network(batch.next_observation).value)
    expected, _ = naf_loss(
        network(batch.observation), next_value, batch, numbers, PRESETS["ReF-ER"], DISCOUNT
    )
    assert loss.item() == expected.item()
    assert feedback["value"].shape == (16,)


def test_the_stage_is_a_pure_function_of_its_parameters():
    network, target = networks()
    batch, numbers = transitions(16, 5, 3), schedule()
    stage = NafStage(network, target, PRESETS["ReF-ER"], DISCOUNT)
    parameters = dict(network.named_parameters())
    loss, _ = stage(parameters, batch, numbers)
    gradients = torch.func.grad(lambda p: stage(p, batch, numbers)[0])(parameters)
    direct = torch.autograd.grad(loss, list(parameters.values()))
    for gradient, other in zip(gradients.values(), direct, strict=True):
        assert torch.allclose(gradient, other, rtol=1e-5, atol=1e-7)
    moved = {name: tensor.detach() + 0.1 for name, tensor in parameters.items()}
    other, _ = stage(moved, batch, numbers)
    with torch.no_grad():
        for tensor in parameters.values():
            tensor.add_(0.1)
    assert stage(parameters, batch, numbers)[0].item() == pytest.approx(other.item(), rel=1e-6)
