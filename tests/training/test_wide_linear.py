"""Wide layers against torch's own."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from training.engines.compiled_engine import CompiledEngine
from training.engines.compiler import compiler_problem
from training.engines.engine import EagerEngine
from training.network import Mlp
from training.stage import PureModule
from training.wide_linear import WIDE, WideLinear


def _layers() -> tuple[WideLinear, nn.Linear]:
    wide = WideLinear(96, 40)
    plain = nn.Linear(96, 40)
    with torch.no_grad():
        for tensor in wide.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=torch.Generator().manual_seed(3)))
    plain.load_state_dict(wide.state_dict())
    return wide, plain


def _passes(layer: nn.Module, inputs: Tensor, upstream: Tensor) -> list[Tensor]:
    given = inputs.clone().requires_grad_()
    outputs = layer(given)
    return [outputs, *torch.autograd.grad(outputs, [given, *layer.parameters()], upstream)]


class _Descent:
    """Plain gradient descent, an update rule without a state."""

    def __init__(self, optimizer: Any, parameters: Any) -> None:
        self.tensors = list(parameters.values())

    def apply(self, gradients: list[Tensor], schedule: Any) -> None:
        for tensor, gradient in zip(self.tensors, gradients, strict=True):
            tensor.sub_(schedule["learning_rate"] * gradient)


@pytest.mark.parametrize("batch", [1, 7, 32])
def test_outputs_and_gradients_are_a_plain_layers(batch):
    draw = torch.Generator().manual_seed(0)
    inputs, upstream = (
        torch.randn(batch, 96, generator=draw),
        torch.randn(batch, 40, generator=draw),
    )
    found, wanted = (_passes(layer, inputs, upstream) for layer in _layers())
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=2e-5)
    again = _passes(_layers()[0], inputs, upstream)
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))


@pytest.mark.skipif(compiler_problem() is not None, reason=str(compiler_problem()))
def test_compiled_updates_take_it_as_it_is():
    draw = torch.Generator().manual_seed(0)
    inputs, rate = torch.randn(8, 96, generator=draw), torch.tensor(1e-2)
    wide, plain = (nn.Sequential(layer, nn.ReLU(), nn.Linear(40, 1)) for layer in _layers())
    plain.load_state_dict(wide.state_dict())
    for kind, network in ((CompiledEngine, wide), (EagerEngine, plain)):
        parameters, run = dict(network.named_parameters()), PureModule(network)

        def loss(given: Any, batch: Tensor, schedule: Any, run: Any = run) -> Any:
            outputs = run(given, batch)
            with torch.no_grad():  # as double Q-learning chooses actions
                constant = run(given, batch)
            outputs = outputs + constant
            return outputs.square().mean(), {"outputs": outputs.detach()}

        optimizer = torch.optim.SGD(parameters.values(), lr=1.0)
        engine = kind(loss, parameters, optimizer, rule=_Descent)
        for _ in range(3):
            engine.update(inputs, {"learning_rate": rate})
    for mine, theirs in zip(wide.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_other_numbers_are_torchs():
    wide, plain = (layer.double() for layer in _layers())
    inputs = torch.randn(5, 96, dtype=torch.float64)
    assert torch.equal(wide(inputs), plain(inputs))


def test_networks_take_wide_layers_where_they_pay():
    assert WIDE == 1024 * 1024
    body = Mlp(1024, (1024, 1023), generator=torch.Generator().manual_seed(0))
    assert [type(layer) for layer in body.layers] == [WideLinear, nn.Linear]
    other = copy.deepcopy(body)
    assert type(other.layers[0]) is WideLinear
