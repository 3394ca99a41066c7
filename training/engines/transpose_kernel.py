"""Transposing a matrix in squares that stay in registers."""

# ruff: noqa: ARG001 - numba prescribes the arguments of an intrinsic and of its generator
from __future__ import annotations

from typing import Any

import numba.extending
from llvmlite import ir
from numba import types

from storage.kernel import Floats32, Index, kernel

__all__ = ["transpose"]

_SIDE = 8

_intrinsic: Any = numba.extending.intrinsic
_row = ir.VectorType(ir.FloatType(), _SIDE)
_place = ir.IntType(32)


@_intrinsic
def _turn(typingctx: Any, source: Any, source_row: Any, target: Any, target_row: Any) -> Any:
    """Transpose a square from one address to another, with so many bytes between rows."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, source_row, target, target_row = arguments

        def at(base: Any, step: Any, number: int) -> Any:
            further = builder.mul(step, ir.Constant(step.type, number))
            return builder.inttoptr(builder.add(base, further), _row.as_pointer())

        rows = [builder.load(at(source, source_row, i), align=4) for i in range(_SIDE)]
        half = _SIDE // 2
        for _ in range(_SIDE.bit_length() - 1):  # each round brings one bit of the index across
            pairs = [(rows[i], rows[i + half]) for i in range(half)]
            masks = [_interleaving(0), _interleaving(half)]
            rows = [builder.shuffle_vector(*pair, mask) for pair in pairs for mask in masks]
        for i, row in enumerate(rows):
            builder.store(row, at(target, target_row, i), align=4)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4), codegen


def _interleaving(first: int) -> ir.Constant:
    """Half of two rows' numbers, from ``first`` on, one of each in turn."""
    places = [at for i in range(first, first + _SIDE // 2) for at in (i, i + _SIDE)]
    mask = [ir.Constant(_place, place) for place in places]
    return ir.Constant(ir.VectorType(_place, _SIDE), mask)


@kernel
def transpose(source: Floats32, rows: Index, columns: Index, target: Floats32) -> None:
    """Transpose the first rows and columns of a padded matrix, with their padding, into another."""
    step, target_step = source.strides[0], target.strides[0]
    for i in range(0, rows, _SIDE):
        for j in range(0, columns, _SIDE):
            _turn(
                source.ctypes.data + i * step + 4 * j,
                step,
                target.ctypes.data + j * target_step + 4 * i,
                target_step,
            )
