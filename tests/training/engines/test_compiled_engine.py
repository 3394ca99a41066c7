"""The compiled engine against the eager one, with a real compiler."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.training.engines.test_engine import batch, network, schedule, weighted
from training.agents.vracer.stage import VRacerStage
from training.engines.adam import make_adam
from training.engines.compile_report import CompileError
from training.engines.compiled_engine import CompiledEngine
from training.engines.compiler import compiler_problem
from training.engines.engine import EagerEngine
from training.refer import PRESETS

pytestmark = pytest.mark.skipif(compiler_problem() is not None, reason=str(compiler_problem()))


def test_three_updates_agree_and_changed_numbers_compile_nothing_anew() -> None:
    nets = [network(), copy.deepcopy(network())]
    engines = []
    for kind, net in zip((EagerEngine, CompiledEngine), nets, strict=True):
        stage = VRacerStage(net, PRESETS["ReF-ER"], 0.995)
        optimizer = make_adam(net.parameters(), learning_rate=1.0)
        named = dict(net.named_parameters())
        engines.append(kind(stage, named, optimizer, max_gradient_norm=0.05))
    counters = torch._dynamo.utils.counters["stats"]
    graphs = None
    for i in range(3):
        numbers = schedule(1e-3 / (1 + i))
        numbers.set(beta=0.2 + 0.3 * i, far_bound=5.0 - i)
        eager, compiled = (engine.update(weighted(i), numbers) for engine in engines)
        assert compiled.keys() == eager.keys()
        for name, values in eager.items():
            assert torch.allclose(compiled[name], values, rtol=1e-5, atol=1e-5), name
        graphs = graphs or counters["unique_graphs"]
        assert counters["unique_graphs"] == graphs
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.allclose(one, other, rtol=0.0, atol=1e-6)
        assert other.grad is None


def test_a_first_update_that_breaks_half_way_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch compiles before it runs; should a graph ever fail while it runs, no bit is changed."""
    net = network()
    optimizer = make_adam(net.parameters(), learning_rate=1.0)
    stage = VRacerStage(net, PRESETS["ReF-ER"], 0.995)
    engine = CompiledEngine(stage, dict(net.named_parameters()), optimizer)
    whole = engine._whole_update

    def breaks(*arguments):
        whole(*arguments)
        raise MemoryError("no room for the\nresult")

    monkeypatch.setattr(engine, "_compiled", breaks)
    for _ in range(2):
        with pytest.raises(CompileError, match="no room for the "):
            engine.update(batch(0), schedule())
        twin = network()
        for one, other in zip(net.parameters(), twin.parameters(), strict=True):
            assert torch.equal(one, other)
        assert all(
            not tensor.any() for state in optimizer.state.values() for tensor in state.values()
        )


def test_compiled_code_is_taken_from_the_cache_by_the_next_engine() -> None:
    """As a later process does: what dynamo knows of the first engine is forgotten in between."""
    counters = torch._dynamo.utils.counters
    hits = []
    for _ in range(2):
        torch._dynamo.reset()
        net = network()
        stage = VRacerStage(net, PRESETS["ReF-ER"], 0.995)
        optimizer = make_adam(net.parameters(), learning_rate=1.0)
        engine = CompiledEngine(stage, dict(net.named_parameters()), optimizer)
        counters.clear()
        engine.update(batch(0), schedule())
        found = counters["aot_autograd"]["autograd_cache_hit"]
        hits.append(found + counters["inductor"]["fxgraph_cache_hit"])
    assert hits[1] >= 1
    assert counters["inductor"]["fxgraph_cache_miss"] == 0


@pytest.mark.soak
def test_any_number_of_engines_may_be_compiled_in_a_process() -> None:
    """Torch compiles one piece of code eight times at most, for all that are alive."""
    engines = []
    for number in range(10):
        net = network(number)
        optimizer = make_adam(net.parameters(), learning_rate=1.0)
        stage = VRacerStage(net, PRESETS["ReF-ER"], 0.995)
        engines.append(CompiledEngine(stage, dict(net.named_parameters()), optimizer))
        assert torch.isfinite(engines[-1].update(batch(0, 16 + number), schedule())["loss"])
