"""The closed-form gradient against autograd through V-RACER's loss, for every rule and shape."""

from __future__ import annotations

import pytest
import torch

from training.agents.vracer.gradient import VRacerGradient
from training.agents.vracer.network import VRacerNetwork
from training.agents.vracer.stage import VRacerStage
from training.batches.tensor_batch import TensorBatch
from training.engines.adam import ADAM_EPSILON, make_adam
from training.engines.fused_engine import FusedEngine
from training.learner import Learner
from training.refer import PRESETS, ReferSettings
from training.stage import ScheduleTensors

_RULES = {**PRESETS, "reverse": ReferSettings(divergence="policy_behaviour")}


def _batch(size: int, observations: int, actions: int) -> TensorBatch:
    draw = torch.Generator().manual_seed(4)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw)

    mean, stdev = normal(size, actions) * 0.3, 0.3 + torch.rand(size, actions, generator=draw)
    action = mean + stdev * normal(size, actions)
    return TensorBatch(
        observation=normal(size, observations),
        raw_action=action,
        reward=normal(size),
        next_value_target=normal(size),
        behaviour_mean=mean,
        behaviour_stdev=stdev,
        behaviour_log_density=torch.distributions.Normal(mean, stdev).log_prob(action).sum(-1),
        sampling_weight=0.5 + torch.rand(size, generator=draw),
    )


def _schedule() -> ScheduleTensors:
    schedule = ScheduleTensors(*Learner.schedule)
    schedule.set(learning_rate=0.0, beta=0.3, far_bound=1.5, reward_scale=1.7)
    return schedule


@pytest.mark.parametrize("rules", _RULES)
@pytest.mark.parametrize("state_dependent", [False, True])
@pytest.mark.parametrize("hidden", [(16,), (16, 16), (24, 16, 16)])
def test_gradients_and_feedback(rules: str, state_dependent: bool, hidden: tuple[int, ...]) -> None:
    network = VRacerNetwork(
        5,
        3,
        hidden=hidden,
        state_dependent_stdev=state_dependent,
        generator=torch.Generator().manual_seed(1),
    )
    batch, schedule, settings = _batch(64, 5, 3), _schedule(), _RULES[rules]
    stage = VRacerStage(network, settings, 0.995)
    loss, wanted = stage(dict(network.named_parameters()), batch, schedule)
    gradients = torch.autograd.grad(loss, list(network.parameters()))
    near = (wanted["importance_ratio"] <= 1.5) & (wanted["importance_ratio"] >= 1 / 1.5)
    assert 5 < int(near.sum()) < 59

    gradient = VRacerGradient(network, settings, 0.995)
    optimizer = make_adam(network.parameters(), learning_rate=1.0)
    engine = FusedEngine(gradient, optimizer)
    feedback = engine.update(batch, schedule)
    assert feedback["loss"].item() == pytest.approx(loss.item(), rel=1e-5, abs=1e-6)
    for name, values in wanted.items():
        assert torch.allclose(feedback[name], values, rtol=1e-5, atol=1e-5), name
    for tensor, expected in zip(network.parameters(), gradients, strict=True):
        decayed = optimizer.state[tensor]["exp_avg"] / 0.1  # the first average is a tenth of it
        mine = decayed - ADAM_EPSILON * tensor
        scale = expected.abs().max()
        assert torch.allclose(mine, expected, rtol=0, atol=float(1e-5 * scale)), expected.shape
