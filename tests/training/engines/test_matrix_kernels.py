"""Matrix products and transposition against NumPy's, on every edge of the padding."""

from __future__ import annotations

import numpy as np
import pytest

from storage.kernel import Floats32
from training.engines.matrix_kernels import multiply_add, padded
from training.engines.transpose_kernel import transpose


def _random(rows: int, columns: int, seed: int) -> tuple[Floats32, Floats32]:
    """A padded matrix and the part of it that counts."""
    matrix = padded(rows, columns)
    part = matrix[:rows, :columns]
    part[:] = np.random.default_rng(seed).normal(size=part.shape)
    return matrix, part


def _in_order(left: Floats32, right: Floats32, start: Floats32) -> Floats32:
    """The product summed in the order of the depth, with one rounding a step."""
    total = start.astype(np.float64)
    for k in range(left.shape[1]):
        product = left[:, k, None].astype(np.float64) * right[k].astype(np.float64)
        total = (total + product).astype(np.float32).astype(np.float64)
    return total.astype(np.float32)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [(1, 1, 1), (8, 16, 1), (7, 15, 3), (9, 17, 5), (64, 33, 128), (256, 7, 17), (17, 128, 64)],
)
def test_products_are_added_in_the_order_of_the_depth(rows, columns, depth, turned):
    a, left = _random(depth, rows, 0) if turned else _random(rows, depth, 0)
    b, right = _random(depth, columns, 1)
    c, result = _random(rows, columns, 2)
    if turned:
        left = left.T
    wanted = _in_order(left, right, result)
    step, row = (a.strides[0], 4) if turned else (4, a.strides[0])
    multiply_add(
        a.ctypes.data, row, step, b.ctypes.data, b.strides[0], c.ctypes.data, c.strides[0],
        rows, columns, depth,
    )  # fmt: skip
    np.testing.assert_array_equal(result, wanted)
    beyond = c.copy()
    beyond[:rows, :columns] = 0.0
    assert not beyond.any()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (8, 8), (7, 9), (17, 33), (128, 17)])
def test_transposition(rows, columns):
    source, part = _random(rows, columns, 3)
    target = padded(columns, rows)
    transpose(source, rows, columns, target)
    np.testing.assert_array_equal(target[:columns, :rows], part.T)
    target[:columns, :rows] = 0.0
    assert not target.any()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (8, 16), (9, 17)])
def test_padded_rows_begin_at_cache_lines(rows, columns):
    matrix = padded(rows, columns)
    assert matrix.shape[0] % 8 == 0
    assert matrix.shape[0] >= rows
    assert matrix.shape[1] % 16 == 0
    assert matrix.shape[1] >= columns + 16
    assert matrix.ctypes.data % 64 == 0
