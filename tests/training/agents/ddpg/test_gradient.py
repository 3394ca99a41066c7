"""DDPG's closed forms against autograd through its losses, and their updates."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from storage.errors import ConfigError
from tests.training.agents.ddpg.batches import SIZE, batch, networks, schedule
from training.agents.ddpg.gradient import ActorGradient, CriticGradient, JointGradient
from training.agents.ddpg.stage import ActorStage, CriticStage, JointStage
from training.engines.adam import ADAM_EPSILON
from training.engines.fused_engine import FusedEngine
from training.refer import PRESETS, ReferSettings

RULES = {**PRESETS, "reverse": ReferSettings(divergence="policy_behaviour")}
DISCOUNT, TAU = 0.9, 0.05
KINDS = ("critic", "actor", "joint")


def stages(kind: str, nets: Any, rules: ReferSettings) -> tuple[Any, Any, dict[str, Any]]:
    """A stage, its closed form, and the parameters of both."""
    if kind == "critic":
        made = CriticStage(nets, rules, DISCOUNT), CriticGradient(nets, rules, DISCOUNT)
        return *made, dict(nets.critic.named_parameters())
    if kind == "actor":
        made = ActorStage(nets, rules), ActorGradient(nets, rules, TAU)
        return *made, dict(nets.actor.named_parameters())
    made = JointStage(nets, rules, DISCOUNT), JointGradient(nets, rules, DISCOUNT, TAU)
    return *made, nets.parameters_of("actor", "critic")


def adam(parameters: Any) -> torch.optim.Adam:
    tensors = list(parameters.values())
    return torch.optim.Adam(tensors, lr=1.0, eps=ADAM_EPSILON, weight_decay=ADAM_EPSILON)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", ["softsign", "relu"])
@pytest.mark.parametrize("bounded", [False, True])
def test_gradients_and_feedback(kind, rules, activation, bounded):
    nets = networks(activation=activation, bounded_mean=bounded, hidden=[16, 16, 8])
    steps, numbers = batch(nets, size=70), schedule(far_bound=2.0)
    stage, closed, parameters = stages(kind, nets, RULES[rules])
    loss, wanted = stage(parameters, steps, numbers)
    gradients = torch.autograd.grad(loss, list(parameters.values()))

    optimizer = adam(closed.parameters)
    feedback = FusedEngine(closed, optimizer).update(steps, numbers)
    assert set(feedback) == set(wanted) | {"loss", "gradient_norm"}
    assert feedback["loss"].item() == pytest.approx(loss.item(), rel=1e-5, abs=1e-6)
    for name, values in wanted.items():
        torch.testing.assert_close(feedback[name], values, rtol=2e-5, atol=1e-5, msg=name)
    if "importance_ratio" in wanted:
        ratio = wanted["importance_ratio"]
        assert 3 < int(((ratio <= 2.0) & (ratio >= 0.5)).sum()) < 67
    for tensor, expected in zip(parameters.values(), gradients, strict=True):
        found = optimizer.state[tensor]["exp_avg"] / 0.1  # the first average is a tenth of it
        room = float(2e-5 * expected.abs().max()) + 2e-7
        torch.testing.assert_close(found, expected, rtol=0, atol=room)


def test_the_targets_wait_for_the_last_stage():
    nets = networks()
    before, steps = copy.deepcopy(nets), batch(nets)
    critic = CriticGradient(nets, PRESETS["ER"], DISCOUNT)
    actor = ActorGradient(nets, PRESETS["ER"], TAU)
    engines = [FusedEngine(each, adam(each.parameters)) for each in (critic, actor)]
    engines[0].update(steps, schedule())
    for target, old in zip(
        nets.target_critic.parameters(), before.target_critic.parameters(), strict=True
    ):
        assert torch.equal(target, old)
    engines[1].update(steps, schedule())
    for name in ("actor", "critic"):
        online, target, old = (
            each.parameters()
            for each in (
                nets.get_submodule(name),
                nets.get_submodule(f"target_{name}"),
                before.get_submodule(f"target_{name}"),
            )
        )
        for now, behind, start in zip(online, target, old, strict=True):
            wanted = start + TAU * (now - start)
            torch.testing.assert_close(behind, wanted, rtol=0, atol=1e-7)
            assert not torch.equal(behind, start)


@pytest.mark.parametrize("kind", KINDS)
def test_updates_are_deterministic_and_batch_sizes_may_change(kind):
    def train() -> list[torch.Tensor]:
        nets = networks(hidden=[16, 16])
        closed = stages(kind, nets, PRESETS["ReF-ER"])[1]
        engine = FusedEngine(closed, adam(closed.parameters))
        for seed, size in enumerate((32, 32, 7, 64, 32)):
            engine.update(batch(nets, seed, size), schedule())
        return list(nets.parameters())

    assert all(torch.equal(a, b) for a, b in zip(train(), train(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_whose_memory_was_replaced_are_taken_hold_of_by_bind(kind):
    made = [networks(), networks()]
    forms = [stages(kind, nets, PRESETS["ReF-ER"])[1] for nets in made]
    engines = [FusedEngine(each, adam(each.parameters)) for each in forms]
    for nets, engine in zip(made, engines, strict=True):
        engine.update(batch(nets), schedule())
    for part in made[0].children():
        flat = torch.nn.utils.parameters_to_vector(part.parameters()).detach().clone()
        torch.nn.utils.vector_to_parameters(flat, part.parameters())
    steps = batch(made[1], 5)
    for engine in engines:
        engine.bind()
        engine.update(steps, schedule())
    for one, other in zip(made[0].parameters(), made[1].parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("field", ["raw_action", "behaviour_mean", "continuing", "reward"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_unlike_lengths_is_refused(kind, field):
    nets = networks()
    before, closed = copy.deepcopy(nets), stages(kind, nets, PRESETS["ReF-ER"])[1]
    engine = FusedEngine(closed, adam(closed.parameters))
    whole = batch(nets)
    with pytest.raises(ConfigError, match=f"the batch's {field} has shape"):
        engine.update(whole._replace(**{field: getattr(whole, field)[:4]}), schedule())
    for one, other in zip(nets.parameters(), before.parameters(), strict=True):
        assert torch.equal(one, other)
    engine.update(whole, schedule())
    assert len(whole.reward) == SIZE


def test_other_layers_have_no_closed_form():
    nets = networks(activation="tanh")
    closed = stages("joint", nets, PRESETS["ER"])[1]
    with pytest.raises(ConfigError, match="layers of tanh have no passes by hand"):
        FusedEngine(closed, adam(closed.parameters)).update(batch(nets), schedule())
