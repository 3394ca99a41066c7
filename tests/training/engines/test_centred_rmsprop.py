"""Centred RMSProp: its formula, its limits, and both engines on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from storage.errors import CheckpointError, ConfigError
from training.engines.centred_rmsprop import CentredRMSprop, CentredRMSpropRule
from training.engines.compiled_engine import CompiledEngine
from training.engines.engine import EagerEngine
from training.stage import ScheduleTensors

STEPS = 12


def _gradients(scale: float = 1.0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [scale * torch.randn(5, generator=generator) for _ in range(STEPS)]


def _walk(optimizer, parameter, gradients) -> torch.Tensor:
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach()


def _naive(start, gradients, *, rate, decay, epsilon, square):
    """TensorFlow's formula in float64, number by number."""
    x = start.double().numpy().copy()
    squares, averages = np.full(x.shape, square), np.zeros(x.shape)
    for gradient in gradients:
        g = gradient.double().numpy()
        squares = decay * squares + (1 - decay) * g * g
        averages = decay * averages + (1 - decay) * g
        x -= rate * g / np.sqrt(squares - averages * averages + epsilon)
    return x


@pytest.mark.parametrize("square", [0.0, 1.0])
@pytest.mark.parametrize("epsilon", [1e-5, 0.3])
def test_the_formula(square, epsilon):
    parameter = torch.nn.Parameter(torch.linspace(-1, 1, 5))
    start, gradients = parameter.detach().clone(), _gradients()
    optimizer = CentredRMSprop(
        [parameter], learning_rate=0.01, decay=0.9, epsilon=epsilon, initial_square=square
    )
    walked = _walk(optimizer, parameter, gradients)
    expected = _naive(start, gradients, rate=0.01, decay=0.9, epsilon=epsilon, square=square)
    assert walked.numpy() == pytest.approx(expected, abs=2e-6)


def test_without_epsilon_it_is_torchs_own():
    ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 5)) for _ in range(2))
    gradients = _gradients()
    mine = CentredRMSprop([ours], learning_rate=0.01, epsilon=0.0, initial_square=0.0)
    torchs = torch.optim.RMSprop([theirs], lr=0.01, alpha=0.95, eps=0.0, centered=True)
    left, right = _walk(mine, ours, gradients), _walk(torchs, theirs, gradients)
    assert left.numpy() == pytest.approx(right.numpy(), abs=1e-5)


def test_epsilon_bounds_steps_inside_the_root():
    """Gradients far below the root of epsilon move by lr g / sqrt(epsilon), not lr g / epsilon."""
    parameter = torch.nn.Parameter(torch.zeros(5))
    gradient = torch.full((5,), 1e-6)
    optimizer = CentredRMSprop([parameter], learning_rate=1.0, epsilon=1e-4, initial_square=0.0)
    walked = _walk(optimizer, parameter, [gradient])
    assert walked.numpy() == pytest.approx(np.full(5, -1e-4), rel=1e-4)


def test_equal_large_gradients_give_no_nan():
    parameter = torch.nn.Parameter(torch.zeros(5))
    optimizer = CentredRMSprop([parameter], learning_rate=1e-3, epsilon=1e-5)
    assert torch.isfinite(_walk(optimizer, parameter, [torch.full((5,), 777.7)] * 500)).all()


def _stage(parameters, batch, schedule):
    error = parameters["x"] - batch
    return (error * error).mean(), {"error": error.detach()}


@pytest.mark.parametrize(
    "engine", [EagerEngine, pytest.param(CompiledEngine, marks=pytest.mark.soak)]
)
def test_engines_step_it_by_the_schedules_rate(engine):
    parameter = torch.nn.Parameter(torch.linspace(-1, 1, 5))
    own = torch.nn.Parameter(parameter.detach().clone())
    optimizer = CentredRMSprop([parameter], learning_rate=77.0)
    stepped = engine(_stage, {"x": parameter}, optimizer, rule=CentredRMSpropRule)
    by_itself = CentredRMSprop([own], learning_rate=0.0)
    schedule = ScheduleTensors("learning_rate")
    for update, goal in enumerate(_gradients()):
        schedule.set(learning_rate=0.01 / (update + 1))
        stepped.update(goal, schedule)
        by_itself.param_groups[0]["lr"] = 0.01 / (update + 1)
        own.grad = (2 / 5) * (own.detach() - goal)
        by_itself.step()
    assert parameter.detach().numpy() == pytest.approx(own.detach().numpy(), abs=1e-6)
    assert parameter.grad is None
    kept, expected = (each.state_dict()["state"][0] for each in (optimizer, by_itself))
    assert kept.keys() == expected.keys() == {"square_avg", "grad_avg"}
    for name, value in kept.items():
        assert value.numpy() == pytest.approx(expected[name].numpy(), abs=1e-6)


def test_a_loaded_state_goes_on():
    """Six steps, saved and loaded elsewhere, and six more, equal twelve."""
    gradients = _gradients()
    straight, first = (torch.nn.Parameter(torch.ones(5)) for _ in range(2))
    whole = _walk(CentredRMSprop([straight], learning_rate=0.01), straight, gradients)
    optimizer = CentredRMSprop([first], learning_rate=0.01)
    _walk(optimizer, first, gradients[:6])
    second = torch.nn.Parameter(first.detach().clone())
    other = CentredRMSprop([second], learning_rate=0.5)
    other.load_state_dict(optimizer.state_dict())
    assert torch.equal(_walk(other, second, gradients[6:]), whole)


def test_another_optimizer_or_its_state_is_refused():
    parameter = torch.nn.Parameter(torch.ones(5))
    with pytest.raises(ConfigError, match="not Adam's"):
        CentredRMSpropRule(torch.optim.Adam([parameter]), {"x": parameter})
    optimizer = CentredRMSprop([parameter], learning_rate=0.1)
    optimizer.state[parameter] = {"exp_avg": torch.ones(5)}
    with pytest.raises(CheckpointError, match=r"missing \['grad_avg', 'square_avg'\]"):
        CentredRMSpropRule(optimizer, {"x": parameter})


def test_a_closure_is_called_and_nothing_moves_without_gradients():
    parameter = torch.nn.Parameter(torch.ones(5))
    optimizer = CentredRMSprop([parameter], learning_rate=0.1)
    assert optimizer.step(lambda: "done") == "done"
    assert torch.equal(parameter.detach(), torch.ones(5))
    assert not optimizer.state
