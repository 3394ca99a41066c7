"""Blocks of memory that the host writes and an update reads."""

from __future__ import annotations

import numpy as np
import torch

from training.device import HOST, HostReader, MirroredBlock, arrays_of


def test_on_the_host_both_sides_are_the_same_memory():
    block = MirroredBlock(5, HOST)
    block.host.numpy()[:] = np.arange(5)
    block.send()
    assert block.there.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert block.there.data_ptr() == block.host.data_ptr()


def test_tensors_of_the_host_are_read_in_place():
    value, ratio = torch.zeros(3), torch.ones(3)
    read = HostReader(["value", "ratio"])
    arrays = read({"value": value, "ratio": ratio, "other": value})
    value[1] = 7.0
    assert list(arrays) == ["value", "ratio"]
    assert arrays["value"].tolist() == [0.0, 7.0, 0.0]
    assert read({"value": value, "ratio": ratio}) is arrays
    assert read({"value": ratio, "ratio": value})["ratio"].tolist() == [0.0, 7.0, 0.0]
    weight = torch.nn.Parameter(torch.zeros(2, 3))
    (array,) = arrays_of([weight])
    with torch.no_grad():
        weight[1, 2] = 4.0
    assert array[1, 2] == 4.0
