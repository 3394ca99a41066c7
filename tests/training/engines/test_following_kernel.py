from __future__ import annotations

import numpy as np
import pytest
import torch

from training.engines.following_kernel import follow

SHAPES = [(3, 4), (1, 5), (1, 1)]


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_targets_go_a_part_of_the_way_as_lerp_takes_them(rate):
    draw = torch.Generator().manual_seed(0)
    online = [torch.randn(shape, generator=draw) for shape in SHAPES]
    targets = [torch.randn(shape, generator=draw) for shape in SHAPES]
    wanted = [target.clone() for target in targets]
    torch._foreach_lerp_(wanted, online, rate)
    before = [tensor.clone() for tensor in online]
    follow(*(tuple(tensor.numpy() for tensor in each) for each in (targets, online)), rate)
    for target, expected in zip(targets, wanted, strict=True):
        assert np.allclose(target.numpy(), expected.numpy(), rtol=0.0, atol=2e-7)
    assert all(torch.equal(a, b) for a, b in zip(online, before, strict=True))
