"""The compiled half of storing a step: checks on the rows just copied, then the scalar columns.

It works on raw addresses, so that one compilation serves every schema. A *plan* is an int64 array
that the writer's lane keeps: addresses of the scalar columns, then one line for each check.
Invariant: nothing but the scalars of row ``row`` is written, and only when every check passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

__all__ = [
    "BAD_BOUND",
    "BAD_REWARD",
    "CHECK_FIELDS",
    "FLOAT_CODES",
    "PLAN_CHECKS",
    "dtype_code",
    "store_step",
]

PLAN_CHECKS = 7
"""Where the check lines start: after six addresses (0 = no such column) and their count."""
CHECK_FIELDS = 7
"""A line: data address, row bytes, numbers, dtype code, row shift, low and high address or 0."""
BAD_REWARD = -1
BAD_BOUND = 1 << 20
_DTYPES = (
    "float64 float32 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
)
FLOAT_CODES = 3
"""Codes below this are floating point."""


def dtype_code(dtype: np.dtype[Any]) -> int:
    """The kernel's number for a dtype."""
    return _DTYPES.index(dtype.name)


def _loader(kind: Any) -> Any:
    @intrinsic
    def load(typing_context, address):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            pointer_type = context.get_data_type(kind).as_pointer()
            pointer = builder.inttoptr(arguments[0], pointer_type)
            return builder.load(pointer)

        return kind(types.int64), generate

    return load


def _storer(kind: Any) -> Any:
    @intrinsic
    def store(typing_context, address, value):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            pointer_type = context.get_data_type(kind).as_pointer()
            pointer = builder.inttoptr(arguments[0], pointer_type)
            builder.store(arguments[1], pointer)
            return context.get_dummy_value()

        return types.void(types.int64, kind), generate

    return store


_float64, _float32 = _loader(types.float64), _loader(types.float32)
_int8, _int16, _int32, _int64 = map(_loader, (types.int8, types.int16, types.int32, types.int64))
_uint8, _uint16, _uint32 = map(_loader, (types.uint8, types.uint16, types.uint32))
_uint64 = _loader(types.uint64)
_store_float64, _store_int64 = _storer(types.float64), _storer(types.int64)
_store_uint8 = _storer(types.uint8)


@njit("int64(int64, int64, int64, int64)", cache=True, error_model="numpy")
def _check_float64(data, count, low, high):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(count):
        value = _float64(data + 8 * i)
        total += value - value
    if total != 0.0:
        return 1
    if low:
        for i in range(count):
            value = _float64(data + 8 * i)
            if value < _float64(low + 8 * i) or value > _float64(high + 8 * i):
                return 2
    return 0


@njit("int64(int64, int64, int64, int64)", cache=True, error_model="numpy")
def _check_float32(data, count, low, high):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for i in range(count):
        value = _float32(data + 4 * i)
        total += value - value
    if total != 0.0:
        return 1
    if low:
        for i in range(count):
            value = _float32(data + 4 * i)
            if value < _float32(low + 4 * i) or value > _float32(high + 4 * i):
                return 2
    return 0


@njit("int64(int64)", cache=True)
def _half_order(bits):  # type: ignore[no-untyped-def]
    """An integer that orders finite float16 values as the values themselves."""
    return bits if bits < 32768 else 32768 - bits


@njit("int64(int64, int64, int64, int64)", cache=True)
def _check_float16(data, count, low, high):  # type: ignore[no-untyped-def]
    for i in range(count):
        bits = np.int64(_uint16(data + 2 * i))
        if (bits & 0x7C00) == 0x7C00:
            return 1
        if low:
            value = _half_order(bits)
            if value < _half_order(np.int64(_uint16(low + 2 * i))):
                return 2
            if value > _half_order(np.int64(_uint16(high + 2 * i))):
                return 2
    return 0


@njit("int64(int64, int64)", cache=True)
def _integer(address, code):  # type: ignore[no-untyped-def]
    if code == 3:
        return np.int64(_int8(address))
    if code == 4:
        return np.int64(_int16(address))
    if code == 5:
        return np.int64(_int32(address))
    if code == 6:
        return _int64(address)
    if code == 8:
        return np.int64(_uint16(address))
    if code == 9:
        return np.int64(_uint32(address))
    return np.int64(_uint8(address))


@njit("int64(int64, int64, int64, int64, int64)", cache=True)
def _check_integer(data, count, code, low, high):  # type: ignore[no-untyped-def]
    width = 1
    if code == 4 or code == 8:
        width = 2
    elif code == 5 or code == 9:
        width = 4
    elif code == 6 or code == 10:
        width = 8
    for i in range(0, count * width, width):
        if code == 10:
            if _uint64(data + i) < _uint64(low + i) or _uint64(data + i) > _uint64(high + i):
                return 2
        else:
            value = _integer(data + i, code)
            if value < _integer(low + i, code) or value > _integer(high + i, code):
                return 2
    return 0


@njit(
    "int64(int64, int64, int64, float64, boolean, boolean, int64, int64, boolean)",
    cache=True,
    error_model="numpy",
)
def store_step(  # type: ignore[no-untyped-def]
    plan, row, present, reward, terminated, truncated, behaviour_kind, policy_update, life_lost
):
    """Check and finish one step; 0 when stored, else what was wrong.

    ``present``: bits 0 and 1 say whether the first two checks apply; all others do. Returns BAD_REWARD, or 1 + i for a number
    that is not finite in check i, or BAD_BOUND + i for one outside its bounds.
    """
    if reward - reward != 0.0:
        return BAD_REWARD
    line = plan + 8 * PLAN_CHECKS
    for i in range(_int64(plan + 48)):
        if i > 1 or (present >> i) & 1:
            count = _int64(line + 16)
            code = _int64(line + 24)
            data = _int64(line) + (row + _int64(line + 32)) * _int64(line + 8)
            low = _int64(line + 40)
            high = _int64(line + 48)
            if code == 0:
                bad = _check_float64(data, count, low, high)
            elif code == 1:
                bad = _check_float32(data, count, low, high)
            elif code == 2:
                bad = _check_float16(data, count, low, high)
            else:
                bad = _check_integer(data, count, code, low, high)
            if bad == 1:
                return 1 + i
            if bad == 2:
                return BAD_BOUND + i
        line += 8 * CHECK_FIELDS
    _store_float64(_int64(plan) + 8 * row, reward)
    _store_uint8(_int64(plan + 8) + row, np.uint8(terminated))
    _store_uint8(_int64(plan + 16) + row, np.uint8(truncated))
    _store_uint8(_int64(plan + 24) + row, np.uint8(behaviour_kind))
    _store_int64(_int64(plan + 32) + 8 * row, policy_update)
    if _int64(plan + 40):
        _store_uint8(_int64(plan + 40) + row, np.uint8(life_lost))
    return 0
