"""Matrix products of small float32 matrices, at the full rate of one core.

A BLAS packs and dispatches for a good part of its time at the sizes of control tasks; here
eight rows by one vector of the result stay in registers while the depth is run through. Every
number of a result is summed in the order of the depth, hence the same bits whatever the vectors'
width, the blocks and the machine, as long as it has fused multiply-add.

Matrices are `padded`: rows up to a multiple of `ROWS`, columns of `COLUMNS`, so that there are no
edges to treat, and a cache line more, so that the rows of a column do not share few cache sets.
"""

# ruff: noqa: ARG001 - numba prescribes the arguments of an intrinsic and of its generator
from __future__ import annotations

from typing import Any, Final

import llvmlite.binding
import numba.core.cgutils
import numba.extending
import torch
from llvmlite import ir
from numba import types

from storage.kernel import Floats32, Index, kernel
from storage.layout import align_up

__all__ = ["COLUMNS", "ROWS", "multiply_add", "padded"]

ROWS: Final = 8
"""Rows of a result that are computed together."""
COLUMNS: Final = 16
"""Padded matrices have a multiple of so many columns: one cache line."""

_WIDTH = 16 if llvmlite.binding.get_host_cpu_features().get("avx512f", False) else 8
_cgutils: Any = numba.core.cgutils
_intrinsic: Any = numba.extending.intrinsic
_word = ir.IntType(64)
_number = ir.FloatType()
_vector = ir.VectorType(_number, _WIDTH)


def padded(rows: int, columns: int) -> Floats32:
    """Zeros with room for (rows, columns), aligned to cache lines."""
    shape = align_up(rows, ROWS), align_up(columns, COLUMNS) + COLUMNS
    array: Floats32 = torch.zeros(shape).numpy()
    return array


def _address(builder: Any, base: Any, bytes_further: Any, element: Any) -> Any:
    return builder.inttoptr(builder.add(base, bytes_further), element.as_pointer())


def _spread(builder: Any, number: Any) -> Any:
    """A vector that holds ``number`` in every place."""
    nothing, first = ir.Constant(_vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), _WIDTH), None)
    return builder.shuffle_vector(
        builder.insert_element(nothing, number, first), nothing, everywhere
    )


@_intrinsic
def _tile(
    typingctx: Any, a: Any, a_row: Any, a_step: Any, b: Any, b_row: Any, c: Any, c_row: Any, n: Any
) -> Any:
    """Add a product of depth n >= 1 to `ROWS` rows by one vector of the result at ``c``.

    ``a``, ``b`` and ``c`` are addresses, the others distances in bytes: between rows of the left
    factor, between its columns, and between rows of the right factor and of the result.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, a_row, a_step, b, b_row, c, c_row, depth = arguments
        kind = ir.FunctionType(_vector, [_vector] * 3)
        name = f"llvm.fmuladd.v{_WIDTH}f32"
        multiply = _cgutils.get_or_insert_function(builder.module, kind, name)
        numbers = [ir.Constant(_word, i) for i in range(ROWS)]
        places = [_address(builder, c, builder.mul(c_row, i), _vector) for i in numbers]
        rows = [builder.mul(a_row, i) for i in numbers]
        starts = [ir.Constant(_word, 0), a, b, *(builder.load(p, align=4) for p in places)]
        before, loop = builder.block, builder.append_basic_block("depth")
        builder.branch(loop)
        builder.position_at_end(loop)
        values = [builder.phi(start.type) for start in starts]
        step, left, right, *sums = values
        vector = builder.load(builder.inttoptr(right, _vector.as_pointer()), align=4)
        results = [
            builder.add(step, ir.Constant(_word, 1)),
            builder.add(left, a_step),
            builder.add(right, b_row),
        ]
        for row, total in zip(rows, sums, strict=True):
            factor = builder.load(_address(builder, left, row, _number), align=4)
            results.append(builder.call(multiply, [_spread(builder, factor), vector, total]))
        for value, start, result in zip(values, starts, results, strict=True):
            value.add_incoming(start, before)
            value.add_incoming(result, loop)
        after = builder.append_basic_block("done")
        builder.cbranch(builder.icmp_signed("<", results[0], depth), loop, after)
        builder.position_at_end(after)
        for place, result in zip(places, results[3:], strict=True):
            builder.store(result, place, align=4)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 8), codegen


@kernel
def multiply_add(
    a: Index,
    a_row: Index,
    a_step: Index,
    b: Index,
    b_row: Index,
    c: Index,
    c_row: Index,
    rows: Index,
    columns: Index,
    depth: Index,
) -> None:
    """C += A B, all by address, with distances in bytes as of `_tile`; ``depth`` >= 1.

    ``rows`` and ``columns`` are rounded up to `ROWS` and `COLUMNS`: what lies there in the padding
    of A and B goes into the padding of C.
    """
    for j in range(0, -(-columns // _WIDTH) * _WIDTH, _WIDTH):
        for i in range(0, rows, ROWS):
            corner = c + i * c_row + 4 * j
            _tile(a + i * a_row, a_row, a_step, b + 4 * j, b_row, corner, c_row, depth)
