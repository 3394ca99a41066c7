"""What later agents need of the seam: another formula, groups, and targets that follow."""

from __future__ import annotations

import copy
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from storage.errors import ConfigError
from training.engines.adam import AdamRule
from training.engines.compiled_engine import CompiledEngine
from training.engines.compiler import compiler_problem
from training.engines.engine import EagerEngine
from training.engines.following import following
from training.engines.update_rule import owned_groups
from training.stage import PureModule, ScheduleTensors

SPEED, DECAY, EPSILON = 0.02, 0.95, 1e-5
KINDS = [
    "eager",
    pytest.param(
        "compiled",
        marks=pytest.mark.skipif(compiler_problem() is not None, reason=str(compiler_problem())),
    ),
]


class Pair(NamedTuple):
    """A batch: inputs (B, 3) and what the judge is taught (B,)."""

    inputs: Tensor
    wanted: Tensor


def pair(seed: int) -> Pair:
    draw = torch.Generator().manual_seed(seed)
    return Pair(torch.randn(16, 3, generator=draw), torch.randn(16, generator=draw))


class Nets(nn.Module):
    """An actor and a judge of its actions, as DDPG has them, and the judge's target."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.actor, self.judge = nn.Linear(3, 2), nn.Linear(5, 1)
        self.target = copy.deepcopy(self.judge).requires_grad_(False)

    def group(self, name: str) -> dict[str, Tensor]:
        named = self.named_parameters()
        return {key: tensor for key, tensor in named if key.startswith(name)}


class Both:
    """Two losses in one stage, each held constant in the other's parameters."""

    def __init__(self, nets: Nets) -> None:
        self.actor, self.judge = PureModule(nets.actor), PureModule(nets.judge)
        self.target = nets.target

    def __call__(self, parameters, batch, schedule):
        own = {name: part(parameters, name) for name in ("actor", "judge")}
        action = self.actor(own["actor"], batch.inputs).tanh()
        with torch.no_grad():
            future = self.target(torch.cat([batch.inputs, action], 1)).squeeze(1)
        seen = torch.cat([batch.inputs, action.detach()], 1)
        error = self.judge(own["judge"], seen).squeeze(1) - batch.wanted - 0.9 * future
        frozen = {name: tensor.detach() for name, tensor in own["judge"].items()}
        worth = self.judge(frozen, torch.cat([batch.inputs, action], 1)).mean()
        return (error * error).mean() - worth, {"error": error.detach()}


def part(parameters, name):
    prefix = f"{name}."
    names = [each for each in parameters if each.startswith(prefix)]
    return {each.removeprefix(prefix): parameters[each] for each in names}


class CentredRmsProp(torch.optim.Optimizer):
    """Its state lies where every optimizer's does, so that checkpoints keep it."""

    def __init__(self, parameters) -> None:
        super().__init__(parameters, {})
        for group in self.param_groups:
            for tensor in group["params"]:
                state = {"mean": torch.zeros_like(tensor), "square": torch.zeros_like(tensor)}
                self.state[tensor] = state


class CentredRmsPropRule:
    """Epsilon inside the root, as TensorFlow has it (an `UpdateRule`)."""

    def __init__(self, optimizer, parameters) -> None:
        self.parameters = list(parameters.values())
        states = [optimizer.state[tensor] for tensor in self.parameters]
        self.means = [state["mean"] for state in states]
        self.squares = [state["square"] for state in states]
        self.tensors = [*self.parameters, *self.means, *self.squares]

    def apply(self, gradients, schedule) -> None:
        products = torch._foreach_mul(gradients, gradients)
        torch._foreach_lerp_(self.means, gradients, 1 - DECAY)
        torch._foreach_lerp_(self.squares, products, 1 - DECAY)
        spread = torch._foreach_sub(self.squares, torch._foreach_mul(self.means, self.means))
        root = torch._foreach_sqrt(torch._foreach_add(spread, EPSILON))
        step = torch._foreach_mul(torch._foreach_div(gradients, root), schedule["learning_rate"])
        torch._foreach_sub_(self.parameters, step)


def engine(kind, nets, optimizer, rule):
    followed = following([(nets.judge, nets.target)], SPEED, rule)
    made = {"eager": EagerEngine, "compiled": CompiledEngine}[kind]
    return made(Both(nets), nets.group("actor") | nets.group("judge"), optimizer, rule=followed)


def numbers() -> ScheduleTensors:
    schedule = ScheduleTensors("learning_rate", "judge_rate")
    schedule.set(learning_rate=1e-3, judge_rate=1e-2)
    return schedule


def by_hand(nets: Nets, optimizer: torch.optim.Optimizer, batch: Pair) -> None:
    """One update as one would write it without an engine."""
    optimizer.zero_grad()
    both = dict(nets.named_parameters())
    Both(nets)(both, batch, {})[0].backward()
    optimizer.step()
    with torch.no_grad():
        for target, online in zip(nets.target.parameters(), nets.judge.parameters(), strict=True):
            target.add_(SPEED * (online - target))


def assert_close(one: nn.Module, other: nn.Module) -> None:
    for (name, a), b in zip(one.named_parameters(), other.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=0.0, atol=1e-6), name
        assert a.grad is None or not a.requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_two_groups_of_adam_step_by_their_own_rates_and_targets_follow(kind):
    nets, twin = Nets(), Nets()
    groups = [
        {"params": list(nets.judge.parameters()), "rate": "judge_rate", "weight_decay": 1e-2},
        {"params": list(nets.actor.parameters())},
    ]
    runs = engine(kind, nets, torch.optim.Adam(groups, lr=9.0), AdamRule)
    groups = [
        {"params": list(twin.judge.parameters()), "lr": 1e-2, "weight_decay": 1e-2},
        {"params": list(twin.actor.parameters()), "lr": 1e-3},
    ]
    optimizer, start = torch.optim.Adam(groups), copy.deepcopy(nets)
    for i in range(5):
        feedback = runs.update(pair(i), numbers())
        by_hand(twin, optimizer, pair(i))
    optimizer.zero_grad()
    assert_close(nets, twin)
    assert feedback["error"].shape == (16,)
    for name, tensor in nets.named_parameters():
        assert not torch.equal(tensor, start.get_parameter(name)), name


@pytest.mark.parametrize("kind", KINDS)
def test_another_formula_runs_and_its_state_is_the_optimizers(kind):
    nets, twin = Nets(), Nets()
    both = nets.group("actor") | nets.group("judge")
    optimizer = CentredRmsProp(both.values())
    runs = engine(kind, nets, optimizer, CentredRmsPropRule)
    means = {name: torch.zeros_like(tensor) for name, tensor in both.items()}
    squares = copy.deepcopy(means)
    for i in range(5):
        runs.update(pair(i), numbers())
        own = dict(twin.named_parameters())
        gradients = torch.autograd.grad(Both(twin)(own, pair(i), {})[0], [own[n] for n in both])
        with torch.no_grad():
            for name, gradient in zip(both, gradients, strict=True):
                means[name] = DECAY * means[name] + (1 - DECAY) * gradient
                squares[name] = DECAY * squares[name] + (1 - DECAY) * gradient**2
                own[name] -= 1e-3 * gradient / (squares[name] - means[name] ** 2 + EPSILON).sqrt()
            pairs = zip(twin.target.parameters(), twin.judge.parameters(), strict=True)
            for target, online in pairs:
                target.add_(SPEED * (online - target))
    assert_close(nets, twin)
    saved = optimizer.state_dict()["state"]
    for number, name in enumerate(both):
        assert torch.allclose(saved[number]["mean"], means[name], rtol=0.0, atol=1e-6)
        assert torch.allclose(saved[number]["square"], squares[name], rtol=0.0, atol=1e-6)


def test_two_engines_may_share_an_optimizer_group_by_group():
    """Which is how one network is updated after, and by, another one that was just changed."""
    nets = Nets()
    actor, judge = (list(each.parameters()) for each in (nets.actor, nets.judge))
    optimizer = torch.optim.Adam([{"params": actor}, {"params": judge, "rate": "judge_rate"}])
    start = copy.deepcopy(nets)
    stage = Both(nets)
    fixed = nets.group("actor")

    def judge_alone(parameters, batch, schedule):
        return stage(fixed | dict(parameters), batch, schedule)

    EagerEngine(judge_alone, nets.group("judge"), optimizer).update(pair(0), numbers())
    assert not torch.equal(nets.judge.weight, start.judge.weight)
    assert torch.equal(nets.actor.weight, start.actor.weight)
    assert (nets.judge.weight - start.judge.weight).abs().max().item() == pytest.approx(1e-2, 1e-3)
    assert set(optimizer.state) == set(judge)


def test_a_group_must_be_the_stages_own():
    nets = Nets()
    mixed = torch.optim.Adam([*nets.judge.parameters(), *nets.actor.parameters()])
    with pytest.raises(ConfigError, match="exactly the parameters"):
        owned_groups(nets.group("judge"), mixed)
    lacking = torch.optim.Adam([nets.judge.weight])
    with pytest.raises(ConfigError, match="exactly the parameters"):
        owned_groups(nets.group("judge"), lacking)
    apart = torch.optim.Adam([{"params": list(nets.actor.parameters())}])
    apart.add_param_group({"params": list(nets.judge.parameters())})
    assert owned_groups(nets.group("judge"), apart) == [1]
