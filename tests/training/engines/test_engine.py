from __future__ import annotations

import copy
import io

import pytest
import torch

from storage.errors import CheckpointError, ConfigError
from training.agents.vracer.gradient import VRacerGradient
from training.agents.vracer.network import VRacerNetwork
from training.agents.vracer.stage import VRacerStage
from training.batches.tensor_batch import TensorBatch
from training.engines.adam import ADAM_EPSILON, make_adam
from training.engines.engine import EagerEngine
from training.engines.fused_engine import FusedEngine
from training.learner import Learner
from training.refer import PRESETS
from training.stage import ScheduleTensors


def network(seed: int = 0) -> VRacerNetwork:
    return VRacerNetwork(3, 2, hidden=(16, 16), generator=torch.Generator().manual_seed(seed))


def schedule(learning_rate: float = 1e-3) -> ScheduleTensors:
    numbers = ScheduleTensors(*Learner.schedule)
    numbers.set(learning_rate=learning_rate, beta=0.5, far_bound=5.0, reward_scale=2.0)
    return numbers


def batch(seed: int, size: int = 32) -> TensorBatch:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    mean, stdev, action = normal(size, 2) * 0.1, torch.full((size, 2), 0.5), normal(size, 2) * 0.5
    density = torch.distributions.Normal(mean, stdev).log_prob(action).sum(-1)
    return TensorBatch(
        observation=normal(size, 3),
        raw_action=action,
        reward=normal(size),
        next_value_target=normal(size),
        behaviour_mean=mean,
        behaviour_stdev=stdev,
        behaviour_log_density=density,
        sampling_weight=torch.ones(size),
    )


@pytest.fixture(params=["eager", "fused"])
def make_engine(request: pytest.FixtureRequest):
    """Every engine must pass every test of this file."""

    def make(net: VRacerNetwork, **settings):
        optimizer = make_adam(net.parameters(), learning_rate=123.0)
        stage = VRacerStage(net, PRESETS["ReF-ER"], 0.995)
        if request.param == "eager":
            engine = EagerEngine(stage, dict(net.named_parameters()), optimizer, **settings)
        else:
            gradient = VRacerGradient(net, PRESETS["ReF-ER"], 0.995)
            engine = FusedEngine(gradient, optimizer, **settings)
        return engine, optimizer, stage

    return make


def assert_same(first, second, tolerance=0.0):
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=0.0, atol=tolerance)


def test_engine_equals_the_optimizers_own_step(make_engine):
    net, twin = network(), network()
    engine, _, _ = make_engine(net)
    optimizer = torch.optim.Adam(
        twin.parameters(), lr=1e-3, eps=ADAM_EPSILON, weight_decay=ADAM_EPSILON
    )
    stage = VRacerStage(twin, PRESETS["ReF-ER"], 0.995)
    for i in range(20):
        rate = 1e-3 / (1 + i)
        engine.update(batch(i), schedule(rate))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        stage(dict(twin.named_parameters()), batch(i), schedule())[0].backward()
        optimizer.step()
    assert_same(net, twin, 1e-6)
    assert not torch.equal(net.head.weight, network().head.weight)


def test_gradients_stay_none_and_the_optimizers_own_step_does_nothing(make_engine):
    net = network()
    engine, optimizer, _ = make_engine(net)
    engine.update(batch(0), schedule())
    assert all(parameter.grad is None for parameter in net.parameters())
    before = copy.deepcopy(net)
    optimizer.step(lambda: torch.zeros(()))
    assert_same(net, before)
    assert optimizer.state[net.head.weight]["step"].item() == 1.0


def test_feedback_has_the_loss_and_the_gradient_norm(make_engine):
    net = network()
    engine, _, stage = make_engine(net)
    loss, _ = stage(dict(net.named_parameters()), batch(0), schedule())
    gradients = torch.autograd.grad(loss, list(net.parameters()))
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    feedback = engine.update(batch(0), schedule())
    assert feedback["loss"].item() == pytest.approx(loss.item(), rel=1e-5)
    assert feedback["gradient_norm"].item() == pytest.approx(norm.item(), rel=1e-5)
    assert feedback["value"].shape == (32,)
    assert not any(value.requires_grad for value in feedback.values())


def weighted(seed: int) -> TensorBatch:
    """A batch with sampling weights between 0 and 1, one of them 0 and one 1."""
    weights = torch.rand(32, generator=torch.Generator().manual_seed(100 + seed))
    weights[3], weights[7] = 0.0, 1.0
    return batch(seed)._replace(sampling_weight=weights)


def gradients_by_steps(net: VRacerNetwork, whole: TensorBatch) -> list[torch.Tensor]:
    """Each step's own gradient, improvement and divergence, times its weight; their mean."""
    stage = VRacerStage(net, PRESETS["ReF-ER"], 0.995)
    named = dict(net.named_parameters())
    total = [torch.zeros_like(parameter) for parameter in net.parameters()]
    for i, weight in enumerate(whole.sampling_weight):
        one = TensorBatch(*(field[i : i + 1] for field in whole))
        loss, _ = stage(named, one._replace(sampling_weight=torch.ones(1)), schedule())
        own = torch.autograd.grad(loss, list(net.parameters()))
        total = [t + weight * g / 32 for t, g in zip(total, own, strict=True)]
    return total


def test_a_sampling_weight_multiplies_its_steps_whole_gradient(make_engine):
    net, twin, unweighted = network(), network(), network()
    engine, _, _ = make_engine(net)
    plain, _, _ = make_engine(unweighted)
    optimizer = torch.optim.Adam(
        twin.parameters(), lr=1e-3, eps=ADAM_EPSILON, weight_decay=ADAM_EPSILON
    )
    for i in range(5):
        found = engine.update(weighted(i), schedule())
        plain.update(batch(i), schedule())
        for tensor, gradient in zip(
            twin.parameters(), gradients_by_steps(twin, weighted(i)), strict=True
        ):
            tensor.grad = gradient
        norm = torch.cat([tensor.grad.flatten() for tensor in twin.parameters()]).norm()
        assert found["gradient_norm"].item() == pytest.approx(norm.item(), rel=1e-4)
        optimizer.step()
    assert_same(net, twin, 1e-6)
    assert (net.head.weight - unweighted.head.weight).abs().max() > 1e-4


def test_weights_change_no_steps_own_feedback(make_engine):
    engine, _, _ = make_engine(network())
    other, _, _ = make_engine(network())
    plain, found = other.update(batch(0), schedule()), engine.update(weighted(0), schedule())
    for name in ("value", "importance_ratio", "divergence", "priority_error"):
        assert torch.equal(found[name], plain[name]), name
    assert found["priority_error"].min() >= 0
    assert found["priority_error"].max() > 0.1


def test_clipping_equals_the_shortened_gradient(make_engine):
    net, twin = network(), network()
    engine, _, _ = make_engine(net, max_gradient_norm=1e-3)
    optimizer = torch.optim.Adam(
        twin.parameters(), lr=1e-3, eps=ADAM_EPSILON, weight_decay=ADAM_EPSILON
    )
    stage = VRacerStage(twin, PRESETS["ReF-ER"], 0.995)
    for i in range(5):
        feedback = engine.update(batch(i), schedule())
        assert feedback["gradient_norm"] > 1e-3
        optimizer.zero_grad()
        stage(dict(twin.named_parameters()), batch(i), schedule())[0].backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 1e-3)
        optimizer.step()
    assert_same(net, twin, 1e-6)


def test_two_runs_are_bit_equal(make_engine):
    nets = [network(), network()]
    for net in nets:
        engine, _, _ = make_engine(net)
        for i in range(20):
            engine.update(batch(i), schedule())
    assert_same(*nets)


def test_a_loaded_optimizer_goes_on_after_bind(make_engine):
    straight = network()
    engine, optimizer, _ = make_engine(straight)
    for i in range(5):
        engine.update(batch(i), schedule())
    file = io.BytesIO()
    torch.save({"net": straight.state_dict(), "optimizer": optimizer.state_dict()}, file)
    for i in range(5, 10):
        engine.update(batch(i), schedule())

    resumed = network(seed=9)
    engine, optimizer, _ = make_engine(resumed)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    resumed.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    engine.bind()
    for i in range(5, 10):
        engine.update(batch(i), schedule())
    assert_same(straight, resumed)
    saved = optimizer.state_dict()["state"]
    assert all(entry["step"].item() == 10.0 for entry in saved.values())


def test_wrong_optimizers_are_refused(make_engine):
    net = network()
    stage = VRacerStage(net, PRESETS["ReF-ER"], 0.995)
    named = dict(net.named_parameters())
    with pytest.raises(ConfigError, match="SGD"):
        EagerEngine(stage, named, torch.optim.SGD(net.parameters(), lr=0.1))
    with pytest.raises(ConfigError, match="exactly the parameters"):
        EagerEngine(stage, named, make_adam(network().parameters(), learning_rate=0.1))
    with pytest.raises(ConfigError, match="plain Adam"):
        EagerEngine(stage, named, torch.optim.Adam(net.parameters(), amsgrad=True))
    with pytest.raises(ConfigError, match="max_gradient_norm"):
        make_engine(net, max_gradient_norm=0.0)


def test_a_foreign_optimizer_state_is_refused(make_engine):
    net = network()
    engine, optimizer, _ = make_engine(net)
    optimizer.state[net.head.weight] = {"momentum": torch.zeros(1)}
    with pytest.raises(CheckpointError, match="exp_avg"):
        engine.bind()


@pytest.mark.parametrize("field", ["raw_action", "behaviour_mean", "reward", "sampling_weight"])
def test_a_batch_of_unlike_lengths_is_refused(field):
    net = network()
    engine = FusedEngine(
        VRacerGradient(net, PRESETS["ReF-ER"], 0.995), make_adam(net.parameters(), learning_rate=1)
    )
    whole = batch(0)
    before = copy.deepcopy(net)
    with pytest.raises(ConfigError, match=f"the batch's {field} has shape"):
        engine.update(whole._replace(**{field: getattr(whole, field)[:4]}), schedule())
    with pytest.raises(ConfigError, match=r"inputs of shape \(32, 500\)"):
        engine.update(whole._replace(observation=torch.zeros(32, 500)), schedule())
    with pytest.raises(ConfigError, match="at least one step"):
        engine.update(TensorBatch(*(tensor[:0] for tensor in whole)), schedule())
    assert_same(net, before)


def test_weights_whose_memory_was_replaced_are_taken_hold_of_by_bind(make_engine):
    net, twin = network(), network()
    engine, _, _ = make_engine(net)
    other, _, _ = make_engine(twin)
    for each in (engine, other):
        each.update(batch(0), schedule())
    flat = torch.nn.utils.parameters_to_vector(net.parameters()).detach() + 0.1
    torch.nn.utils.vector_to_parameters(flat.clone(), net.parameters())
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(0.1)
    for each in (engine, other):
        each.bind()
        each.update(batch(1), schedule())
    assert_same(net, twin)
    moved = torch.nn.utils.parameters_to_vector(net.parameters()).detach() - flat
    assert moved.abs().max() > 1e-5


def test_a_gradient_that_is_no_number_is_not_clipped_away(make_engine):
    net = network()
    engine, _, _ = make_engine(net, max_gradient_norm=0.1)
    broken = batch(0)
    broken.reward[3] = float("nan")
    engine.update(broken, schedule())
    assert all(torch.isnan(parameter).all() for parameter in net.body.parameters())
