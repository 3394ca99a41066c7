from __future__ import annotations

import math

import pytest
import torch

from training.agents.vracer.network import VRacerNetwork, VRacerOutput
from training.agents.vracer.stage import VRacerStage, vracer_loss
from training.batches.tensor_batch import TensorBatch
from training.refer import PRESETS, ReferSettings

BETA = 0.3
RATIO = 1.6 * math.exp(-0.27)  # the importance ratio 1.2214071909


def tensor(*rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def reference_batch() -> TensorBatch:
    """The step of test vector E.4, split into reward and next value target."""
    mean, stdev = tensor([0.0, 0.5]), tensor([0.4, 0.2])
    action = tensor([0.2, 0.4])
    density = torch.distributions.Normal(mean, stdev).log_prob(action).sum(-1)
    return TensorBatch(
        observation=tensor([0.0]),
        raw_action=action,
        reward=tensor(1.6),
        next_value_target=tensor(1.0),
        behaviour_mean=mean,
        behaviour_stdev=stdev,
        behaviour_log_density=density,
        sampling_weight=tensor(1.0),
    )


def schedule(bound: float = 5.0) -> dict[str, torch.Tensor]:
    numbers = {"beta": BETA, "far_bound": bound, "reward_scale": 2.0, "learning_rate": 0.0}
    return {name: torch.tensor(x, dtype=torch.float64) for name, x in numbers.items()}


def ascent(settings: ReferSettings, bound: float = 5.0):
    output = VRacerOutput(
        tensor(1.2).requires_grad_(),
        tensor([0.1, 0.3]).requires_grad_(),
        tensor([0.5, 0.1]).requires_grad_(),
    )
    loss, feedback = vracer_loss(output, reference_batch(), schedule(bound), settings, 0.9)
    value, mean, stdev = torch.autograd.grad(loss, output)
    return -mean[0], -stdev[0], -value[0], feedback


def check(gradients, mean, stdev, value):
    assert gradients[0].tolist() == pytest.approx(mean, abs=5e-11)
    assert gradients[1].tolist() == pytest.approx(stdev, abs=5e-11)
    assert gradients[2].item() == pytest.approx(value, abs=5e-11)


def test_output_gradients_of_a_near_step():
    gradients = ascent(PRESETS["ReF-ER"])
    check(gradients, [-0.2067155685, 15.8321107864], [-0.7997652710, 49], 0.15)


def test_output_gradients_of_a_far_step():
    check(ascent(PRESETS["ReF-ER"], bound=1.2), [-0.28, 14], [-0.448, 49], 0.0)


def test_rule_2_alone_treats_a_far_step_as_near():
    gradients = ascent(PRESETS["ReF-ER-2"], bound=1.2)
    check(gradients, [-0.2067155685, 15.8321107864], [-0.7997652710, 49], 0.15)


def test_rule_1_alone_has_neither_beta_nor_divergence():
    advantage = RATIO * 0.5
    mean, stdev = [0.4 * advantage, 10 * advantage], [-1.92 * advantage, 0.0]
    check(ascent(PRESETS["ReF-ER-1"]), mean, stdev, 0.5)
    check(ascent(PRESETS["ReF-ER-1"], bound=1.2), [0.0, 0.0], [0.0, 0.0], 0.0)


def test_plain_replay_ignores_the_far_bound():
    advantage = RATIO * 0.5
    mean, stdev = [0.4 * advantage, 10 * advantage], [-1.92 * advantage, 0.0]
    check(ascent(PRESETS["ER"], bound=1.2), mean, stdev, 0.5)


def test_the_other_divergence_is_an_option():
    settings = ReferSettings(divergence="policy_behaviour")
    mean, stdev, _, feedback = ascent(settings, bound=1.2)
    assert mean.tolist() == pytest.approx([-0.7 * 0.625, 0.7 * 5])
    assert stdev.tolist() == pytest.approx([-0.7 * 1.125, 0.7 * 7.5])
    assert feedback["divergence"].item() == pytest.approx(0.9075036292, abs=5e-11)


def test_feedback_of_a_step():
    feedback = ascent(PRESETS["ReF-ER"])[3]
    assert feedback["value"].item() == 1.2
    assert feedback["importance_ratio"].item() == pytest.approx(1.2214071909, abs=5e-11)
    assert feedback["divergence"].item() == pytest.approx(2.8699963708, abs=5e-11)
    assert feedback["priority_error"].item() == pytest.approx(0.5)
    assert not any(value.requires_grad for value in feedback.values())


def random_batch(network: VRacerNetwork, size: int) -> TensorBatch:
    generator = torch.Generator().manual_seed(3)
    observation = torch.randn(size, network.observation_size, generator=generator)
    with torch.no_grad():
        _, mean, stdev = network(observation)
    stdev = stdev.expand_as(mean) * 1.1
    action = mean + stdev * torch.randn(mean.shape, generator=generator)
    density = torch.distributions.Normal(mean, stdev).log_prob(action).sum(-1)
    reward, target = torch.randn(2, size, generator=generator)
    return TensorBatch(observation, action, reward, target, mean, stdev, density, torch.ones(size))


@pytest.mark.parametrize("state_dependent", [False, True])
def test_stage_is_pure_and_equals_the_loss_of_the_outputs(state_dependent):
    network = VRacerNetwork(
        3,
        2,
        hidden=(8, 8),
        state_dependent_stdev=state_dependent,
        generator=torch.Generator().manual_seed(0),
    )
    batch = random_batch(network, 16)
    numbers = {name: value.float() for name, value in schedule().items()}
    stage = VRacerStage(network, PRESETS["ReF-ER"], 0.995)
    parameters = dict(network.named_parameters())
    loss, feedback = stage(parameters, batch, numbers)
    expected, _ = vracer_loss(network(batch.observation), batch, numbers, ReferSettings(), 0.995)
    assert loss.item() == expected.item()
    gradients = torch.func.grad(lambda p: stage(p, batch, numbers)[0])(parameters)
    direct = torch.autograd.grad(loss, list(parameters.values()))
    for gradient, other in zip(gradients.values(), direct, strict=True):
        assert torch.allclose(gradient, other, rtol=1e-5, atol=1e-7)
    assert feedback["value"].shape == (16,)


def test_sampling_weight_multiplies_the_whole_gradient():
    network = VRacerNetwork(3, 2, hidden=(8,), generator=torch.Generator().manual_seed(0))
    batch = random_batch(network, 4)
    numbers = {name: value.float() for name, value in schedule().items()}
    stage = VRacerStage(network, PRESETS["ReF-ER"], 0.995)
    parameters = dict(network.named_parameters())

    def gradient(weights: torch.Tensor) -> torch.Tensor:
        loss, _ = stage(parameters, batch._replace(sampling_weight=weights), numbers)
        return torch.autograd.grad(loss, parameters["head.weight"])[0]

    apart = sum(gradient(torch.eye(4)[i]) * (i + 1) for i in range(4))
    together = gradient(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert torch.allclose(together, apart, rtol=1e-4, atol=1e-7)
