"""The compiled half of storing a step: checks on the rows just copied, then the scalar columns.

It works on raw addresses, so that one compilation serves every schema. A *plan* is an int64 array
that the writer's lane keeps: addresses of the scalar columns, then one line for each check.
Invariant: nothing but the scalars of row ``row`` is written, and only when every check passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from storage.kernel import (
    load_f4,
    load_f8,
    load_i1,
    load_i2,
    load_i4,
    load_i8,
    load_u1,
    load_u2,
    load_u4,
    load_u8,
    store_f8,
    store_i8,
    store_u1,
)
from storage.kernel_cache import keeping_code_in
from storage.layout import BehaviourKind

__all__ = [
    "BAD_BOUND",
    "BAD_KIND",
    "BAD_REWARD",
    "dtype_code",
    "store_step",
]

_PLAN_CHECKS = 7
"""Where the check lines start: after six addresses (0 = no such column) and their count."""
_CHECK_FIELDS = 7
"""A line: data address, row bytes, numbers, dtype code, row shift, low and high address or 0."""
BAD_REWARD = -1
BAD_KIND = -2
BAD_BOUND = 1 << 20
_LAST_KIND = int(max(BehaviourKind))
_DTYPES = (
    *("float64", "float32", "float16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool"),
)


def _compiled(signature: str) -> Callable[[Any], Any]:
    """Compile now, for one signature; keep the machine code where a folder can be written."""

    def compile_it(function: Any) -> Any:
        try:
            with keeping_code_in(function):
                return njit(signature, cache=True, error_model="numpy")(function)
        except RuntimeError:
            return njit(signature, error_model="numpy")(function)

    return compile_it


def dtype_code(dtype: np.dtype[Any]) -> int:
    """The kernel's number for a dtype."""
    return _DTYPES.index(dtype.name)


@_compiled("int64(int64, int64, int64, int64)")
def _check_float64(data, count, low, high):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(count):
        value = load_f8(data + 8 * i)
        total += value - value
    if total != 0.0:
        return 1
    if low:
        for i in range(count):
            value = load_f8(data + 8 * i)
            if value < load_f8(low + 8 * i) or value > load_f8(high + 8 * i):
                return 2
    return 0


@_compiled("int64(int64, int64, int64, int64)")
def _check_float32(data, count, low, high):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for i in range(count):
        value = load_f4(data + 4 * i)
        total += value - value
    if total != 0.0:
        return 1
    if low:
        for i in range(count):
            value = load_f4(data + 4 * i)
            if value < load_f4(low + 4 * i) or value > load_f4(high + 4 * i):
                return 2
    return 0


@_compiled("int64(int64)")
def _half_order(bits):  # type: ignore[no-untyped-def]
    """An integer that orders finite float16 values as the values themselves."""
    return bits if bits < 32768 else 32768 - bits


@_compiled("int64(int64, int64, int64, int64)")
def _check_float16(data, count, low, high):  # type: ignore[no-untyped-def]
    for i in range(count):
        bits = np.int64(load_u2(data + 2 * i))
        if (bits & 0x7C00) == 0x7C00:
            return 1
        if low:
            value = _half_order(bits)
            if value < _half_order(np.int64(load_u2(low + 2 * i))):
                return 2
            if value > _half_order(np.int64(load_u2(high + 2 * i))):
                return 2
    return 0


@_compiled("int64(int64, int64)")
def _integer(address, code):  # type: ignore[no-untyped-def]
    if code == 3:
        return np.int64(load_i1(address))
    if code == 4:
        return np.int64(load_i2(address))
    if code == 5:
        return np.int64(load_i4(address))
    if code == 6:
        return load_i8(address)
    if code == 8:
        return np.int64(load_u2(address))
    if code == 9:
        return np.int64(load_u4(address))
    return np.int64(load_u1(address))


@_compiled("int64(int64, int64, int64, int64, int64)")
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
            if load_u8(data + i) < load_u8(low + i) or load_u8(data + i) > load_u8(high + i):
                return 2
        else:
            value = _integer(data + i, code)
            if value < _integer(low + i, code) or value > _integer(high + i, code):
                return 2
    return 0


@_compiled("int64(int64, int64, int64)")
def _check_lines(plan, row, present):  # type: ignore[no-untyped-def]
    """Run every check that applies; 0 when all passed, else what failed first."""
    line = plan + 8 * _PLAN_CHECKS
    for i in range(load_i8(plan + 48)):
        if i > 1 or (present >> i) & 1:
            count = load_i8(line + 16)
            code = load_i8(line + 24)
            data = load_i8(line) + (row + load_i8(line + 32)) * load_i8(line + 8)
            low = load_i8(line + 40)
            high = load_i8(line + 48)
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
        line += 8 * _CHECK_FIELDS
    return 0


@_compiled("int64(int64, int64, int64, float64, boolean, boolean, int64, int64, boolean)")
def store_step(  # type: ignore[no-untyped-def]
    plan, row, present, reward, terminated, truncated, behaviour_kind, policy_update, life_lost
):
    """Check and finish one step; 0 when stored, else what was wrong.

    ``present``: bits 0 and 1 say whether the first two checks apply; all others do. Returns
    BAD_REWARD or BAD_KIND, or 1 + i for a number that is not finite in check i, or BAD_BOUND + i
    for one outside its bounds.
    """
    if reward - reward != 0.0:
        return BAD_REWARD
    if not 0 <= behaviour_kind <= _LAST_KIND:
        return BAD_KIND
    bad = _check_lines(plan, row, present)
    if bad:
        return bad
    store_f8(load_i8(plan) + 8 * row, reward)
    store_u1(load_i8(plan + 8) + row, np.uint8(terminated))
    store_u1(load_i8(plan + 16) + row, np.uint8(truncated))
    store_u1(load_i8(plan + 24) + row, np.uint8(behaviour_kind))
    store_i8(load_i8(plan + 32) + 8 * row, policy_update)
    if load_i8(plan + 40):
        store_u1(load_i8(plan + 40) + row, np.uint8(life_lost))
    return 0
