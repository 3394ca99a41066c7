"""Targets on the host."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from storage.errors import ConfigError
from training.engines.following import frozen_copy
from training.engines.host_targets import HostTargets


def _pairs() -> list[tuple[nn.Module, nn.Module]]:
    pairs = [(net, frozen_copy(net)) for net in (nn.Linear(3, 4), nn.Linear(2, 2))]
    with torch.no_grad():
        for number, (net, _) in enumerate(pairs):
            for tensor in net.parameters():
                tensor.copy_(torch.full_like(tensor, number + 1.0))
    return pairs


def test_every_target_goes_its_part_of_the_way_and_nothing_else_moves():
    pairs = _pairs()
    starts = [[tensor.clone() for tensor in target.parameters()] for _, target in pairs]
    HostTargets(pairs, 0.25).follow()
    for number, ((net, target), start) in enumerate(zip(pairs, starts, strict=True)):
        assert all((tensor == number + 1.0).all() for tensor in net.parameters())
        for now, before in zip(target.parameters(), start, strict=True):
            torch.testing.assert_close(now, before + 0.25 * (number + 1.0 - before))


def test_memory_that_was_replaced_is_taken_hold_of_by_bind():
    (pair, *_) = _pairs()
    targets = HostTargets([pair], 1.0)
    with torch.no_grad():
        pair[0].weight = nn.Parameter(torch.full((4, 3), 7.0))
    targets.bind()
    targets.follow()
    assert (pair[1].weight == 7.0).all()


def test_tensors_of_another_kind_are_refused():
    net = nn.Linear(2, 2).double()
    with pytest.raises(ConfigError, match=r"needs contiguous float32 tensors on the host"):
        HostTargets([(net, frozen_copy(net))], 0.5)
