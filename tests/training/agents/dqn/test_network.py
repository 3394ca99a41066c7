from __future__ import annotations

import numpy as np
import pytest
import torch

from training.agents.dqn.frames import FrameShape
from training.agents.dqn.network import Convolutions, QNetwork


def generator(seed=0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def convolutions(shape, padding) -> Convolutions:
    return Convolutions(shape, padding=padding, activation="relu", generator=generator())


def naive_convolution(pixels, weight, bias, stride, same) -> np.ndarray:
    """One image (C, H, W) by TensorFlow's rules, in float64, window by window."""
    _, height, width = pixels.shape
    outputs, _, kernel, _ = weight.shape
    sizes = []
    pads = []
    for size in (height, width):
        out = -(-size // stride) if same else (size - kernel) // stride + 1
        pad = max((out - 1) * stride + kernel - size, 0) if same else 0
        sizes.append(out)
        pads.append((pad // 2, pad - pad // 2))
    padded = np.pad(pixels, [(0, 0), *pads])
    made = np.empty((outputs, *sizes))
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            rows = slice(i * stride, i * stride + kernel)
            columns = slice(j * stride, j * stride + kernel)
            window = padded[:, rows, columns]
            made[:, i, j] = np.tensordot(weight, window, 3) + bias
    return made


@pytest.mark.parametrize(("padding", "flat"), [("same", 7744), ("valid", 3136)])
def test_flat_sizes_of_atari_frames(padding, flat):
    made = convolutions(FrameShape(4, 84, 84, True), padding)
    assert made.size == flat
    assert made(torch.zeros((2, 4, 84, 84), dtype=torch.uint8)).shape == (2, flat)
    kernels = [tuple(layer.weight.shape) for layer in made.layers]
    assert kernels == [(32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3)]


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_convolutions_equal_a_naive_twin(padding):
    """At sizes of which padding is odd, even and none."""
    made = convolutions(FrameShape(2, 37, 43, True), padding)
    frames = np.random.default_rng(0).integers(0, 256, (2, 2, 37, 43), dtype=np.uint8)
    with torch.no_grad():
        given = made(torch.from_numpy(frames)).numpy()
    for image, found in zip(frames, given, strict=True):
        hidden = image / 255.0
        for layer, stride in zip(made.layers, (4, 2, 1), strict=True):
            weight, bias = (part.detach().double().numpy() for part in layer.parameters())
            hidden = naive_convolution(hidden, weight, bias, stride, padding == "same")
            hidden = np.maximum(hidden, 0)
        assert found == pytest.approx(np.moveaxis(hidden, 0, -1).ravel(), abs=1e-5)


def test_the_order_of_axes_changes_nothing():
    first = convolutions(FrameShape(3, 40, 50, True), "same")
    last = convolutions(FrameShape(3, 40, 50, False), "same")
    frames = torch.randint(0, 256, (2, 3, 40, 50), dtype=torch.uint8, generator=generator(1))
    turned = frames.permute(0, 2, 3, 1).contiguous()
    assert torch.allclose(first(frames), last(turned), atol=1e-6)


def test_a_network_of_numbers_equals_its_layers():
    network = QNetwork(3, 4, hidden=[5, 6], activation="tanh", generator=generator())
    x = torch.randn((7, 3), generator=generator(1))
    hidden = x
    for layer in network.body.layers:
        hidden = torch.tanh(hidden @ layer.weight.T + layer.bias)
    assert torch.allclose(network(x), hidden @ network.head.weight.T + network.head.bias, atol=1e-6)


@pytest.mark.parametrize("hidden", [[5], [5, 6]])
def test_dueling_equals_two_streams(hidden):
    network = QNetwork(3, 4, hidden=hidden, dueling=True, generator=generator())
    x = torch.randn((7, 3), generator=generator(1)).double()
    twin = network.double()
    shared = x
    for layer in twin.body.layers[:-1]:
        shared = torch.relu(shared @ layer.weight.T + layer.bias)
    last, size = twin.body.layers[-1], hidden[-1]
    assert last.weight.shape[0] == 2 * size
    streams = [
        torch.relu(shared @ last.weight[half].T + last.bias[half])
        for half in (slice(size), slice(size, None))
    ]
    value = streams[0] @ twin.value.weight.T + twin.value.bias
    advantage = streams[1] @ twin.head.weight.T + twin.head.bias
    expected = value + advantage - advantage.sum(1, keepdim=True) / 4
    assert torch.allclose(twin(x), expected, atol=1e-12)
    assert torch.allclose(twin(x).mean(1), value[:, 0], atol=1e-12)


def test_initial_weights_come_from_the_generator_alone():
    shape = FrameShape(2, 36, 36, True)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, second = (QNetwork(shape, 3, hidden=[8], generator=generator(5)) for _ in range(2))
    other = QNetwork(shape, 3, hidden=[8], generator=generator(6))
    assert torch.equal(torch.get_rng_state(), before)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.head.weight, other.head.weight)
    layer = first.convolutions.layers[1]
    assert layer.weight.abs().max() <= 1 / np.sqrt(32 * 4 * 4)
    assert layer.weight.abs().max() > 0.99 / np.sqrt(32 * 4 * 4)
    assert layer.weight.is_contiguous(memory_format=torch.channels_last)
