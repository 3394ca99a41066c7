"""Training on a GPU, where there is one: the same numbers as on the host, and whole runs."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import storage
from tests.training.engines.test_engine import batch, network, schedule
from tests.training.tiny import tiny_config
from training.acting.actor import GaussianActor
from training.agents.vracer.config import VRacerConfig
from training.agents.vracer.stage import VRacerStage
from training.assembly import build, trainer
from training.config import LoopConfig
from training.device import HostReader, MirroredBlock, arrays_of
from training.engines.adam import make_adam
from training.engines.engine import EagerEngine
from training.refer import PRESETS
from training.scaling import ObservationScaling

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
CUDA = torch.device("cuda")


def test_a_block_reaches_the_device():
    block = MirroredBlock(5, CUDA)
    block.host.numpy()[:] = np.arange(5)
    block.send()
    assert block.there.cpu().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    arrays = HostReader(["a", "b"])({"a": block.there, "b": 2 * block.there})
    assert arrays["b"].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert [array.shape for array in arrays_of([block.there, torch.zeros(2, 3, device=CUDA)])] == [
        (5,),
        (2, 3),
    ]


def test_an_update_is_the_host_s():
    nets = network(), network().to(CUDA)
    feedback = []
    for net, device in zip(nets, (torch.device("cpu"), CUDA), strict=True):
        optimizer = make_adam(net.parameters(), learning_rate=1e-3)
        stage = VRacerStage(net, PRESETS["ReF-ER"], 0.995)
        engine = EagerEngine(stage, dict(net.named_parameters()), optimizer)
        there = type(batch(0))(*(tensor.to(device) for tensor in batch(0)))
        numbers = {name: value.to(device) for name, value in schedule().items()}
        read = HostReader(["value", "importance_ratio"])
        feedback.append(read(engine.update(there, numbers)))
    for name, wanted in feedback[0].items():
        np.testing.assert_allclose(feedback[1][name], wanted, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.allclose(mine, theirs.cpu(), atol=1e-5)


def test_the_actor_acts_with_copies_of_the_weights():
    net = network()
    there = copy.deepcopy(net).to(CUDA)
    scaling = ObservationScaling(3)
    observation = np.array([0.3, -1.0, 2.0])
    host = GaussianActor(net, scaling, seed=1).act(0, 5, observation)
    device = GaussianActor(there, scaling, seed=1).act(0, 5, observation)
    np.testing.assert_array_equal(device.raw_action, host.raw_action)


@pytest.mark.parametrize("interval", [1, 7])
def test_a_run_stores_the_weights_that_acted(tmp_path, interval):
    agent = VRacerConfig(
        hidden=[8, 8], batch_size=16, scaling_interval=20, acting_interval=interval
    )
    config = tiny_config(rounds=16, agent=agent)
    loop = {name: getattr(config.loop, name) for name in LoopConfig.__slots__}
    object.__setattr__(config, "loop", LoopConfig(**loop | {"accelerator": "gpu"}))
    module, data = build(config, tmp_path)
    trainer(config, tmp_path).fit(module, data)
    assert module.finished
    with storage.open(tmp_path / "store") as store:
        updates = store.columns["policy_update"][:]
    seen = updates[updates >= 0]
    assert seen.max() > 100
    assert set(np.unique(seen % interval)) == {0}
