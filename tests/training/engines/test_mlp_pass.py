"""The hand-written passes against autograd, for depths, widths, links and ragged batches."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from storage.errors import ConfigError
from storage.kernel import Floats32
from training.engines.matrix_kernels import padded
from training.engines.mlp_pass import ForwardPass, InputPass, MlpPass
from training.network import Mlp


def _network(
    inputs: int, hidden: tuple[int, ...], outputs: int, residual: bool, activation="softsign"
):
    generator = torch.Generator().manual_seed(len(hidden))
    body = Mlp(inputs, hidden, residual=residual, activation=activation, generator=generator)
    head = nn.Linear(hidden[-1], outputs)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return body, head


def _buffers(*modules: nn.Module) -> dict[Tensor, Floats32]:
    parameters = [each for module in modules for each in module.parameters()]
    return {
        each: padded(*(each.shape if each.ndim == 2 else (1, len(each)))) for each in parameters
    }


@pytest.mark.parametrize("activation", ["softsign", "relu"])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("batch", [1, 7, 64, 65, 200])
@pytest.mark.parametrize("hidden", [(5,), (16, 16), (33, 33, 33), (24, 8, 8, 40)])
def test_outputs_and_gradients_are_autograd_s(hidden, batch, residual, activation):
    body, head = _network(3, hidden, 4, residual, activation)
    inputs = torch.randn(batch, 3, generator=torch.Generator().manual_seed(1))
    upstream = torch.randn(batch, 4, generator=torch.Generator().manual_seed(2))
    outputs = head(body(inputs))
    outputs.backward(upstream)
    gradients = _buffers(body, head)
    passes = MlpPass(body, head, batch, gradients)
    for _ in range(2):
        passes.forward(inputs.numpy())
        passes.output_gradient[:, :4] = upstream.numpy()
        passes.backward()
    found = torch.from_numpy(passes.outputs[:, :4].copy())
    assert torch.allclose(found, outputs.detach(), atol=2e-6)
    for parameter, gradient in gradients.items():
        wanted = parameter.grad.reshape(-1, parameter.shape[-1])
        part = torch.from_numpy(gradient[: wanted.shape[0], : wanted.shape[1]].copy())
        assert torch.allclose(part, wanted, atol=1e-5 * max(1.0, float(wanted.abs().max())))


@pytest.mark.parametrize("activation", ["softsign", "relu"])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("batch", [1, 7, 65, 200])
@pytest.mark.parametrize("hidden", [(5,), (16, 16), (33, 33, 33), (24, 8, 8, 40)])
def test_the_gradient_of_inputs_is_autograd_s(hidden, batch, residual, activation):
    body, head = _network(5, hidden, 2, residual, activation)
    draw = torch.Generator().manual_seed(1)
    inputs = torch.randn(batch, 5, generator=draw).requires_grad_()
    upstream = torch.randn(batch, 2, generator=draw)
    head(body(inputs)).backward(upstream)
    passes = InputPass(body, head, batch)
    left, right = inputs.detach().numpy()[:, :3], inputs.detach().numpy()[:, 3:]
    for _ in range(2):
        passes.forward(left, right)
        passes.output_gradient[:, :2] = upstream.numpy()
        passes.backward()
    found = torch.from_numpy(passes.input_gradient[:, :5].copy())
    assert torch.allclose(found, inputs.grad, atol=2e-6 * max(1.0, float(inputs.grad.abs().max())))
    assert not passes.input_gradient[:, 5:].any()


def test_what_is_no_number_stays_so_behind_relu():
    body, head = _network(3, (8, 8), 2, False, "relu")
    passes = ForwardPass(body, head, 2)
    passes.forward(torch.tensor([[1.0, float("nan"), 0.0], [1.0, 2.0, 0.0]]).numpy())
    assert [bool(torch.isnan(torch.from_numpy(row)).all()) for row in passes.outputs[:, :2]] == [
        True,
        False,
    ]


def test_weights_are_read_anew_at_each_pass():
    body, head = _network(3, (16, 16), 2, True)
    passes = MlpPass(body, head, 4, _buffers(body, head))
    inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    passes.forward(inputs.numpy())
    with torch.no_grad():
        for parameter in (*body.parameters(), *head.parameters()):
            parameter.mul_(2.0)
    passes.forward(inputs.numpy())
    wanted = head(body(inputs)).detach()
    assert torch.allclose(torch.from_numpy(passes.outputs[:, :2].copy()), wanted, atol=2e-6)


def test_a_row_does_not_depend_on_the_batch_around_it():
    body, head = _network(3, (16, 16), 2, True)
    inputs = torch.randn(100, 3, generator=torch.Generator().manual_seed(1)).numpy()
    whole, part = (MlpPass(body, head, size, _buffers(body, head)) for size in (100, 30))
    whole.forward(inputs)
    part.forward(inputs[50:80].copy())
    assert (whole.outputs[50:80] == part.outputs).all()


def test_layers_of_another_kind_are_refused():
    body = Mlp(3, (8,), activation="tanh", generator=torch.Generator().manual_seed(0))
    head = nn.Linear(8, 2)
    with pytest.raises(ConfigError, match="layers of tanh have no passes by hand"):
        ForwardPass(body, head, 4)


def test_a_forward_pass_alone_gives_the_same_bits():
    body, head = _network(3, (16, 16), 2, True)
    inputs = torch.randn(9, 3, generator=torch.Generator().manual_seed(1)).numpy()
    alone, both = ForwardPass(body, head, 9), MlpPass(body, head, 9, _buffers(body, head))
    for each in (alone, both):
        each.forward(inputs)
    assert alone.outputs.tobytes() == both.outputs.tobytes()
