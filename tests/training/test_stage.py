from __future__ import annotations

import pytest
import torch

from training.agents.vracer.network import VRacerNetwork
from training.stage import PureModule, ScheduleTensors


def test_schedule_tensors_change_in_place():
    numbers = ScheduleTensors("learning_rate", "beta")
    numbers.set(learning_rate=1e-3, beta=0.5)
    before = dict(numbers)
    numbers.set(beta=0.25)
    assert numbers["beta"] is before["beta"]
    assert before["beta"].item() == 0.25
    assert before["beta"].dim() == 0
    assert before["learning_rate"].item() == pytest.approx(1e-3)
    with pytest.raises(KeyError, match="betta"):
        numbers.set(betta=1.0)


def test_pure_module_uses_the_parameters_given():
    network = VRacerNetwork(3, 2, hidden=(8,), generator=torch.Generator().manual_seed(0))
    other = VRacerNetwork(3, 2, hidden=(8,), generator=torch.Generator().manual_seed(1))
    pure = PureModule(network)
    inputs = torch.ones(4, 3)
    own, foreign = dict(network.named_parameters()), dict(other.named_parameters())
    for parameters, module in ((own, network), (foreign, other)):
        for output, expected in zip(pure(parameters, inputs), module(inputs), strict=True):
            assert torch.equal(output, expected)
    mixed = {**own, "head.bias": own["head.bias"] + 1.0}
    assert torch.allclose(pure(mixed, inputs).value, network(inputs).value + 1.0)
