"""Kernels of a network's forward and backward pass over blocks of rows.

A block goes through all layers before the next one begins, so that what stands between two matrix
products never leaves the processor's cache. All matrices are `padded` (`matrix_kernels`); ``sizes``
are the network's: inputs, hidden widths, outputs. Hidden layers are SoftSign's or ReLU's, by
``activation``; layer k adds the layer before it where ``links[k]``. Sums run in a fixed order: the
same bits on every call.
"""

from __future__ import annotations

import numpy as np

from storage.kernel import Bytes, Floats32, Index, Integers, kernel
from training.acting.activation_kernels import RELU
from training.engines.matrix_kernels import multiply_add
from training.engines.transpose_kernel import transpose

__all__ = ["backward", "copy_rows", "forward", "input_gradients", "pack"]

BLOCK = 64
"""Rows that go through the layers together; a multiple of `ROWS`."""

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@kernel
def copy_rows(source: Floats32, target: Floats32, column: Index = 0) -> None:
    """Copy (rows, columns) into the like part of a padded matrix, from ``column`` on."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, column + j] = source[i, j]


@kernel
def pack(
    weights: tuple[Floats32, ...], straight: tuple[Floats32, ...], across: tuple[Floats32, ...]
) -> None:
    """Copy weights (outputs, inputs) into padded matrices, and transposed into others."""
    for k in range(len(weights)):
        copy_rows(weights[k], straight[k])
        transpose(straight[k], weights[k].shape[0], weights[k].shape[1], across[k])


@kernel
def forward(
    inputs: Floats32,
    across: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    sizes: Integers,
    links: Bytes,
    activation: int,
    hidden: tuple[Floats32, ...],
    outputs: Floats32,
) -> None:
    """Fill the hidden layers and the outputs; ``across`` are the transposed weights."""
    last = len(hidden)
    for start in range(0, inputs.shape[0], BLOCK):
        stop = min(start + BLOCK, inputs.shape[0])
        before = inputs
        for k in range(last):
            after = hidden[k]
            _affine(before, across[k], biases[k], after, start, stop, sizes[k], sizes[k + 1])
            _activate(after, before, links[k], activation, start, stop, sizes[k + 1])
            before = after
        _affine(
            before, across[last], biases[last], outputs, start, stop, sizes[last], sizes[last + 1]
        )


@kernel
def backward(
    inputs: Floats32,
    straight: tuple[Floats32, ...],
    sizes: Integers,
    links: Bytes,
    activation: int,
    hidden: tuple[Floats32, ...],
    output_gradient: Floats32,
    scratch: tuple[Floats32, Floats32],
    weight_gradients: tuple[Floats32, ...],
    bias_gradients: tuple[Floats32, ...],
) -> None:
    """Fill the gradients of all weights and biases from that of the outputs.

    Rows of ``output_gradient`` and columns beyond the batch and the outputs must be zero.
    """
    last = len(hidden)
    for k in range(last + 1):
        weight_gradients[k][:] = _ZERO
        bias_gradients[k][:] = _ZERO
    upstream, inner = scratch
    for start in range(0, inputs.shape[0], BLOCK):
        stop = min(start + BLOCK, inputs.shape[0])
        outputs = output_gradient[start:stop]
        _column_sums(outputs, stop - start, sizes[last + 1], bias_gradients[last])
        _outer(
            outputs,
            hidden[last - 1],
            weight_gradients[last],
            start,
            stop,
            sizes[last + 1],
            sizes[last],
        )
        upstream[: stop - start] = _ZERO
        _through(outputs, straight[last], upstream, stop - start, sizes[last + 1], sizes[last])
        for k in range(last - 1, -1, -1):
            before = hidden[k - 1] if k else inputs
            _slope(
                upstream, hidden[k], before, links[k], activation, start, stop, sizes[k + 1], inner
            )
            _column_sums(inner, stop - start, sizes[k + 1], bias_gradients[k])
            _outer(inner, before, weight_gradients[k], start, stop, sizes[k + 1], sizes[k])
            if k:
                if not links[k]:
                    upstream[: stop - start] = _ZERO
                _through(inner, straight[k], upstream, stop - start, sizes[k + 1], sizes[k])


@kernel
def input_gradients(
    straight: tuple[Floats32, ...],
    sizes: Integers,
    links: Bytes,
    activation: int,
    hidden: tuple[Floats32, ...],
    output_gradient: Floats32,
    scratch: tuple[Floats32, Floats32],
    gradient: Floats32,
) -> None:
    """Fill the gradient of the inputs alone from that of the outputs, as of `backward`."""
    last = len(hidden)
    upstream, inner = scratch
    gradient[:] = _ZERO
    for start in range(0, output_gradient.shape[0], BLOCK):
        stop = min(start + BLOCK, output_gradient.shape[0])
        rows = stop - start
        outputs = output_gradient[start:stop]
        upstream[:rows] = _ZERO
        _through(outputs, straight[last], upstream, rows, sizes[last + 1], sizes[last])
        for k in range(last - 1, -1, -1):
            before = hidden[max(k - 1, 0)]
            _slope(
                upstream, hidden[k], before, links[k], activation, start, stop, sizes[k + 1], inner
            )
            if not k:
                _through(inner, straight[0], gradient[start:stop], rows, sizes[1], sizes[0])
            else:
                if not links[k]:
                    upstream[:rows] = _ZERO
                _through(inner, straight[k], upstream, rows, sizes[k + 1], sizes[k])


@kernel
def _affine(
    before: Floats32,
    across: Floats32,
    bias: Floats32,
    after: Floats32,
    start: Index,
    stop: Index,
    fan_in: Index,
    fan_out: Index,
) -> None:
    """Rows [start, stop) of after = before @ across + bias."""
    for i in range(start, stop):
        for j in range(fan_out):
            after[i, j] = bias[0, j]
    multiply_add(
        before.ctypes.data + start * before.strides[0], before.strides[0], 4,
        across.ctypes.data, across.strides[0],
        after.ctypes.data + start * after.strides[0], after.strides[0],
        stop - start, fan_out, fan_in,
    )  # fmt: skip


@kernel
def _activate(
    after: Floats32,
    before: Floats32,
    linked: Index,
    activation: int,
    start: Index,
    stop: Index,
    width: Index,
) -> None:
    """The activation in place, plus ``before`` where linked."""
    for i in range(start, stop):
        if activation == RELU:
            for j in range(width):
                x = after[i, j]
                after[i, j] = _ZERO if x < _ZERO else x
        else:
            for j in range(width):
                x = after[i, j]
                after[i, j] = x / (_ONE + abs(x))
        if linked:
            for j in range(width):
                after[i, j] += before[i, j]


@kernel
def _slope(
    upstream: Floats32,
    after: Floats32,
    before: Floats32,
    linked: Index,
    activation: int,
    start: Index,
    stop: Index,
    width: Index,
    inner: Floats32,
) -> None:
    """Inner = upstream times the slope of the activation that gave the layer's outputs.

    The slope of SoftSign at x is 1 / (1 + |x|)^2 = (1 - |y|)^2 at y = softsign(x), that of ReLU 1
    where y > 0. Where linked, y is what the layer added, up to rounding.
    """
    for i in range(start, stop):
        if linked:
            for j in range(width):
                inner[i - start, j] = after[i, j] - before[i, j]
        else:
            for j in range(width):
                inner[i - start, j] = after[i, j]
        if activation == RELU:
            for j in range(width):
                steep = inner[i - start, j] > _ZERO
                inner[i - start, j] = upstream[i - start, j] if steep else _ZERO
        else:
            for j in range(width):
                root = _ONE - abs(inner[i - start, j])
                inner[i - start, j] = upstream[i - start, j] * root * root


@kernel
def _column_sums(values: Floats32, rows: Index, width: Index, sums: Floats32) -> None:
    """Add the columns' sums to the first row of ``sums``."""
    for i in range(rows):
        for j in range(width):
            sums[0, j] += values[i, j]


@kernel
def _outer(
    inner: Floats32,
    before: Floats32,
    gradient: Floats32,
    start: Index,
    stop: Index,
    fan_out: Index,
    fan_in: Index,
) -> None:
    """Gradient += inner^T @ rows [start, stop) of before."""
    multiply_add(
        inner.ctypes.data, 4, inner.strides[0],
        before.ctypes.data + start * before.strides[0], before.strides[0],
        gradient.ctypes.data, gradient.strides[0],
        fan_out, fan_in, stop - start,
    )  # fmt: skip


@kernel
def _through(
    inner: Floats32,
    straight: Floats32,
    upstream: Floats32,
    rows: Index,
    fan_out: Index,
    fan_in: Index,
) -> None:
    """Upstream += inner @ weight."""
    multiply_add(
        inner.ctypes.data, inner.strides[0], 4,
        straight.ctypes.data, straight.strides[0],
        upstream.ctypes.data, upstream.strides[0],
        rows, fan_in, fan_out,
    )  # fmt: skip
