"""The closed-form gradient against autograd through NAF's loss, and the engines' updates."""

from __future__ import annotations

import copy

import pytest
import torch

from storage.errors import ConfigError
from tests.training.agents.naf.steps import schedule, transitions
from training.agents.naf.gradient import NafGradient
from training.agents.naf.network import NafNetwork
from training.agents.naf.stage import NafStage
from training.engines.adam import ADAM_EPSILON, make_adam
from training.engines.compiled_engine import CompiledEngine
from training.engines.compiler import compiler_problem
from training.engines.engine import EagerEngine
from training.engines.following import following, frozen_copy
from training.engines.fused_engine import FusedEngine
from training.refer import PRESETS, ReferSettings

RULES = {**PRESETS, "reverse": ReferSettings(divergence="policy_behaviour")}
DISCOUNT, SPEED = 0.995, 0.05


def networks(actions: int, hidden: tuple[int, ...] = (16, 16), **settings):
    """A network and a target that has stayed behind."""
    generator = torch.Generator().manual_seed(1)
    network = NafNetwork(
        5, actions, hidden=hidden, generator=generator, **{"output_bound": 0.3 / actions} | settings
    )
    target = frozen_copy(network)
    with torch.no_grad():
        for parameter in target.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.05)
    return network, target


def fused(network, target, rules: str = "ReF-ER") -> tuple[FusedEngine, torch.optim.Adam]:
    optimizer = make_adam(network.parameters(), learning_rate=1.0)
    gradient = NafGradient(network, target, RULES[rules], DISCOUNT, SPEED)
    return FusedEngine(gradient, optimizer), optimizer


def by_autograd(kind, network, target, rules: str = "ReF-ER"):
    optimizer = make_adam(network.parameters(), learning_rate=1.0)
    stage = NafStage(network, target, RULES[rules], DISCOUNT)
    parameters = dict(network.named_parameters())
    rule = following([(network, target)], SPEED)
    return kind(stage, parameters, optimizer, rule=rule), optimizer


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("diagonal", ["smooth", "exp"])
@pytest.mark.parametrize(("actions", "bounded"), [(1, False), (3, True), (3, False), (7, False)])
def test_gradients_and_feedback(rules, diagonal, actions, bounded):
    network, target = networks(actions, diagonal=diagonal, bounded_mean=bounded)
    batch, numbers = transitions(64, 5, actions), schedule(far_bound=2.0)
    stage = NafStage(network, target, RULES[rules], DISCOUNT)
    loss, wanted = stage(dict(network.named_parameters()), batch, numbers)
    gradients = torch.autograd.grad(loss, list(network.parameters()))
    ratio = wanted["importance_ratio"]
    assert 3 < int(((ratio <= 2.0) & (ratio >= 0.5)).sum()) < 61

    engine, optimizer = fused(network, target, rules)
    feedback = engine.update(batch, numbers)
    assert feedback["loss"].item() == pytest.approx(loss.item(), rel=1e-5, abs=1e-6)
    for name, values in wanted.items():
        assert torch.allclose(feedback[name], values, rtol=2e-5, atol=1e-5), name
    for tensor, expected in zip(network.parameters(), gradients, strict=True):
        decayed = optimizer.state[tensor]["exp_avg"] / 0.1  # the first average is a tenth of it
        mine = decayed - ADAM_EPSILON * tensor
        scale = expected.abs().max()
        assert torch.allclose(mine, expected, rtol=0, atol=float(2e-5 * scale)), expected.shape


def synchronise(source, goal) -> None:
    """The same weights, target and optimizer state in another set of networks."""
    for one, other in zip(source[:2], goal[:2], strict=True):
        other.load_state_dict(one.state_dict())
    for a, b in zip(source[0].parameters(), goal[0].parameters(), strict=True):
        for name, kept in source[2].state[a].items():
            goal[2].state[b][name].copy_(kept)


@pytest.mark.parametrize("kind", [FusedEngine, CompiledEngine])
def test_an_update_is_the_eager_engines_from_many_states(kind):
    if kind is CompiledEngine and compiler_problem() is not None:
        pytest.skip(str(compiler_problem()))
    mine, reference = networks(3), networks(3)
    engine, optimizer = fused(*mine) if kind is FusedEngine else by_autograd(kind, *mine)
    eager, other = by_autograd(EagerEngine, *reference)
    numbers = schedule(learning_rate=1e-3, far_bound=3.0)
    apart = 0.0
    for i in range(60):
        batch = transitions(32, 5, 3, seed=i)
        feedback = {name: each.clone() for name, each in engine.update(batch, numbers).items()}
        wanted = eager.update(batch, numbers)
        for name, values in wanted.items():
            assert torch.allclose(feedback[name], values, rtol=1e-4, atol=1e-5), name
        for ours, theirs in zip(mine, reference, strict=True):
            for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
                apart = max(apart, float((a - b).detach().abs().max()))
        synchronise((*reference, other), (*mine, optimizer))
    assert apart < 1e-5


def test_the_target_follows_after_the_step():
    network, target = networks(2)
    engine, _ = fused(network, target)
    before = copy.deepcopy(target)
    numbers = schedule(learning_rate=1e-2)
    engine.update(transitions(16, 5, 2), numbers)
    pairs = zip(before.parameters(), target.parameters(), network.parameters(), strict=True)
    for old, new, online in pairs:
        assert torch.allclose(new, old + SPEED * (online - old), rtol=0, atol=1e-7)
        assert not torch.equal(new, old)


def test_updates_are_deterministic_and_batch_sizes_may_change():
    def train() -> list[torch.Tensor]:
        network, target = networks(3)
        engine, _ = fused(network, target)
        for i, size in enumerate((32, 32, 7, 64, 32)):
            engine.update(transitions(size, 5, 3, seed=i), schedule(learning_rate=1e-2))
        return [*network.parameters(), *target.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(train(), train(), strict=True))


def test_weights_whose_memory_was_replaced_are_taken_hold_of_by_bind():
    first, second = networks(2), networks(2)
    engines = [fused(*each)[0] for each in (first, second)]
    for engine in engines:
        engine.update(transitions(16, 5, 2), schedule(learning_rate=1e-2))
    for network in first:
        flat = torch.nn.utils.parameters_to_vector(network.parameters()).detach().clone()
        torch.nn.utils.vector_to_parameters(flat, network.parameters())
    for engine in engines:
        engine.bind()
        engine.update(transitions(16, 5, 2, seed=5), schedule(learning_rate=1e-2))
    for one, other in zip(first, second, strict=True):
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("field", ["raw_action", "behaviour_mean", "continuing", "reward"])
def test_a_batch_of_unlike_lengths_is_refused(field):
    network, target = networks(2)
    engine, _ = fused(network, target)
    whole = transitions(32, 5, 2)
    before = copy.deepcopy(network)
    with pytest.raises(ConfigError, match=f"the batch's {field} has shape"):
        engine.update(whole._replace(**{field: getattr(whole, field)[:4]}), schedule())
    with pytest.raises(ConfigError, match=r"inputs of shape \(9, 5\)"):
        engine.update(whole._replace(next_observation=whole.next_observation[:9]), schedule())
    assert all(
        torch.equal(a, b) for a, b in zip(network.parameters(), before.parameters(), strict=True)
    )
