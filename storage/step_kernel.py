"""The compiled half of storing a step: copies, checks on what was copied, then the scalar columns.

It works on raw addresses, so that one compilation serves every schema. A *plan* is an int64 array
that the writer's lane keeps: addresses of the scalar columns, one line for each source that numbers
are copied from, one for each check.
Invariant: nothing but row ``row`` and the next row's observation is written; the scalars only when
every check passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from storage.array_object import numbers_at
from storage.kernel import (
    copy_bytes,
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
    signed_kernel,
    store_f4,
    store_f8,
    store_i8,
    store_u1,
)
from storage.layout import BehaviourKind

__all__ = ["BAD_BOUND", "BAD_KIND", "BAD_REWARD", "BAD_STDEV", "MISFIT", "dtype_code", "store_step"]

_PLAN_SOURCES = 13
"""Where the source lines start: after six addresses (0 = no such column), the number of checks, the
ids of None and of the array type, the checks' bits of raw action and behaviour, the address of the
behaviour column and its number of standard deviations (0 when it has none)."""
_SOURCE_FIELDS = 8
"""A line: data address, row bytes, row shift, id of the dtype or 0 if numbers are never taken from
an object, id of the scalar type or 0, number of dimensions, address of their sizes, and how many
bytes of the object's numbers come before those of the row (a stack's older frames)."""
_PLAN_CHECKS = _PLAN_SOURCES + 4 * _SOURCE_FIELDS
"""Where the check lines start: after the sources observation, action, raw action, behaviour."""
_CHECK_FIELDS = 7
"""A line: data address, row bytes, numbers, dtype code, row shift, low and high address or 0."""
BAD_REWARD = -1
BAD_KIND = -2
BAD_STDEV = -3
BAD_BOUND = 1 << 20
MISFIT = 1 << 40
_NOWHERE = -1
_LAST_KIND = int(max(BehaviourKind))
_GAUSSIAN = int(BehaviourKind.GAUSSIAN)
_NOMINAL = int(BehaviourKind.NOMINAL_GAUSSIAN)
_UNIFORM = int(BehaviourKind.UNIFORM)
_PARAMETRIC = sum(
    1 << kind
    for kind in (
        BehaviourKind.GAUSSIAN,
        BehaviourKind.CATEGORICAL,
        BehaviourKind.NOMINAL_GAUSSIAN,
    )
)
"""A bit for each kind that has parameters."""
_DTYPES = (
    *("float64", "float32", "float16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool"),
)


def dtype_code(dtype: np.dtype[Any]) -> int:
    """The kernel's number for a dtype."""
    return _DTYPES.index(dtype.name)


@signed_kernel("int64(int64, int64, int64, int64)")
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


@signed_kernel("int64(int64, int64, int64, int64)")
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


@signed_kernel("int64(int64)")
def _half_order(bits):  # type: ignore[no-untyped-def]
    """An integer that orders finite float16 values as the values themselves."""
    return bits if bits < 32768 else 32768 - bits


@signed_kernel("int64(int64, int64, int64, int64)")
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


@signed_kernel("int64(int64, int64)")
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


@signed_kernel("int64(int64, int64, int64, int64, int64)")
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


@signed_kernel("int64(int64, int64, int64)")
def _check_lines(plan, row, present):  # type: ignore[no-untyped-def]
    """Run every check that applies; 0 when all passed, else what failed first.

    A column that the step has no numbers for gets NaN.
    """
    line = plan + 8 * _PLAN_CHECKS
    for i in range(load_i8(plan + 48)):
        count = load_i8(line + 16)
        data = load_i8(line) + (row + load_i8(line + 32)) * load_i8(line + 8)
        if i < 2 and not (present >> i) & 1:
            for j in range(count):
                store_f4(data + 4 * j, np.float32(np.nan))
        else:
            code = load_i8(line + 24)
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


@signed_kernel("boolean(int64, int64, int64)")
def _contradicts(behaviour, behaviour_kind, none):  # type: ignore[no-untyped-def]
    """Whether a behaviour is None though its kind has parameters, or given to a uniform one."""
    if behaviour == none:
        return 0 <= behaviour_kind <= _LAST_KIND and (_PARAMETRIC >> behaviour_kind) & 1 != 0
    return behaviour_kind == _UNIFORM and behaviour != 0


@signed_kernel("int64(int64, int64, int64, int64)")
def _check_stdevs(plan, row, behaviour, behaviour_kind):  # type: ignore[no-untyped-def]
    """BAD_STDEV when one of a Gaussian behaviour's second half is not above 0, else 0."""
    bad = 0
    if behaviour != load_i8(plan + 56) and behaviour_kind in (_GAUSSIAN, _NOMINAL):
        count = load_i8(plan + 96)
        data = load_i8(plan + 88) + 4 * count * (2 * row + 1)
        for i in range(0, 4 * count, 4):
            if load_f4(data + i) <= 0.0:
                bad = BAD_STDEV
    return bad


@signed_kernel("int64(int64, int64, int64)")
def _address(plan, source, value):  # type: ignore[no-untyped-def]
    """Where the numbers of a source's object lie.

    0 when there is nothing to take: the step has no such numbers, or they are stored already.
    _NOWHERE when they cannot be taken as they are.
    """
    if value == 0 or (source >= 2 and value == load_i8(plan + 56)):
        return 0
    line = plan + 8 * (_PLAN_SOURCES + _SOURCE_FIELDS * source)
    dtype = load_i8(line + 24)
    if not dtype:
        return _NOWHERE
    scalar, dimensions, sizes = load_i8(line + 32), load_i8(line + 40), load_i8(line + 48)
    at = numbers_at(value, load_i8(plan + 64), scalar, dtype, dimensions, sizes)
    return at + load_i8(line + 56) if at else _NOWHERE


@signed_kernel("void(int64, int64, int64, int64)")
def _take(plan, source, row, address):  # type: ignore[no-untyped-def]
    """Copy a source's numbers into its column."""
    if address:
        line = plan + 8 * (_PLAN_SOURCES + _SOURCE_FIELDS * source)
        size = load_i8(line + 8)
        copy_bytes(load_i8(line) + (row + load_i8(line + 16)) * size, address, size)


@signed_kernel(
    "int64(int64, int64, int64, int64, int64, int64, float64, boolean, boolean, int64, int64,"
    "boolean)"
)
def _store_step(  # type: ignore[no-untyped-def]
    plan,
    row,
    observation,
    action,
    raw_action,
    behaviour,
    reward,
    terminated,
    truncated,
    behaviour_kind,
    policy_update,
    life_lost,
):
    """Copy, check and finish one step; 0 when stored, else what was wrong.

    ``observation``, ``action``, ``raw_action`` and ``behaviour`` are ids of objects that are kept
    alive meanwhile; 0 stands for one whose numbers are stored already. Returns MISFIT with a bit
    for each that is no array or scalar just as its column has it, and for a behaviour that is None
    though its kind has parameters, or given though it has none: nothing is written then. Else
    BAD_REWARD, BAD_KIND or BAD_STDEV, or 1 + i for a number that is not finite in check i, or
    BAD_BOUND + i for one outside its bounds.
    """
    from_observation, from_action = _address(plan, 0, observation), _address(plan, 1, action)
    from_raw, from_behaviour = _address(plan, 2, raw_action), _address(plan, 3, behaviour)
    misfits = 1 * (from_observation == _NOWHERE) + 2 * (from_action == _NOWHERE)
    misfits += 4 * (from_raw == _NOWHERE) + 8 * (from_behaviour == _NOWHERE)
    none = load_i8(plan + 56)
    misfits |= 8 * _contradicts(behaviour, behaviour_kind, none)
    if misfits:
        return MISFIT | misfits
    _take(plan, 0, row, from_observation)
    _take(plan, 1, row, from_action)
    _take(plan, 2, row, from_raw)
    _take(plan, 3, row, from_behaviour)
    if reward - reward != 0.0:
        return BAD_REWARD
    if not 0 <= behaviour_kind <= _LAST_KIND:
        return BAD_KIND
    present = -1
    if raw_action == none:
        present &= ~load_i8(plan + 72)
    if behaviour == none:
        present &= ~load_i8(plan + 80)
    bad = _check_lines(plan, row, present)
    if not bad:
        bad = _check_stdevs(plan, row, behaviour, behaviour_kind)
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


def _entry(kernel: Any) -> Any:
    """A faster way into a kernel of one signature: its own wrapper, without numba's dispatcher.

    The dispatcher looks for the signature that fits the arguments, for twice as long as the call
    takes; the wrapper converts them to the only one there is, or raises TypeError or ValueError.
    """
    (overload,) = kernel.overloads.values()
    return getattr(overload, "entry_point", kernel)


store_step = _entry(_store_step)
"""Copies, checks and finishes one step: `_store_step`."""
