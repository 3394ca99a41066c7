from __future__ import annotations

import numpy as np
import pytest
import torch

from training.agents.dqn.acting import FrameActor, RowActor
from training.agents.dqn.frames import FrameShape
from training.agents.dqn.network import QNetwork
from training.scaling import ObservationScaling


def network(inputs=3, **options) -> QNetwork:
    generator = torch.Generator().manual_seed(4)
    return QNetwork(inputs, 4, generator=generator, **({"hidden": [16, 8]} | options))


def scaling() -> ObservationScaling:
    made = ObservationScaling(3)
    made.mean[:], made.stdev[:] = (1.0, -2.0, 0.0), (1.0, 2.0, 0.5)
    return made


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("hidden", [[16, 8], [7], [8, 8, 8]])
@pytest.mark.parametrize("activation", ["relu", "tanh", "softsign"])
def test_the_kernel_equals_torch(dueling, hidden, activation):
    net, scale = network(dueling=dueling, hidden=hidden, activation=activation), scaling()
    actor = RowActor(net, scale)
    rows = np.random.default_rng(0).normal(size=(20, 3))
    with torch.no_grad():
        expected = net(torch.from_numpy(scale.scale(rows))).numpy()
    assert actor.values(rows) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("dueling", [False, True])
def test_updates_are_seen_and_the_number_of_rows_changes_no_bit(dueling):
    net = network(dueling=dueling)
    actor = RowActor(net, scaling())
    rows = np.random.default_rng(0).normal(size=(9, 3))
    before = actor.values(rows)
    with torch.no_grad():
        for tensor in net.parameters():
            tensor.mul_(1.5)
    after = actor.values(rows)
    assert (after != before).all()
    alone = np.concatenate([actor.values(row[None]) for row in rows])
    assert alone.tobytes() == after.tobytes()


def test_frames_go_through_the_network_one_by_one():
    net = network(FrameShape(2, 36, 36, True))
    actor = FrameActor(net)
    frames = np.random.default_rng(0).integers(0, 256, (5, 2, 36, 36), dtype=np.uint8)
    frames.flags.writeable = False
    values = actor.values(frames)
    with torch.no_grad():
        expected = net(torch.from_numpy(frames.copy())).numpy()
    assert values == pytest.approx(expected, abs=1e-5)
    alone = np.concatenate([actor.values(frame[None]) for frame in frames])
    assert alone.tobytes() == values.tobytes()
    with torch.no_grad():
        net.head.bias.add_(1.0)
    assert actor.values(frames) == pytest.approx(values + 1, abs=1e-5)
