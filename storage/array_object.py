"""NumPy arrays as kernels see them: the fields of the object itself, read at its address.

A kernel that takes an array as an argument is compiled for its dtype, and its array is taken apart
field by field at each call. Here one kernel takes any array by ``id``, and looks only at what it
needs. The layout is that of CPython's and NumPy's C headers (``PyArrayObject_fields``); `is_known`
compares it with real arrays before anybody relies on it.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.kernel import load_i4, load_i8, signed_kernel

__all__ = ["find", "is_known", "numbers_at"]

_HEADER = 16
"""Bytes of every object of CPython's before its own fields: reference count and type."""
_C_CONTIGUOUS = 1


@signed_kernel("int64(int64, int64, int64, int64, int64, int64)")
def numbers_at(value, kind, scalar, dtype, dimensions, sizes):  # type: ignore[no-untyped-def]
    """Where the numbers of an array of this dtype and shape lie, or of such a scalar; else 0.

    ``kind`` is the id of the array type, ``dtype`` that of the dtype object, ``scalar`` that of its
    scalar type, or 0 where scalars will not do; ``sizes`` is the address of ``dimensions`` int64
    numbers. The array must be in one piece.
    """
    own_kind = load_i8(value + 8)
    if own_kind == scalar:
        return value + _HEADER
    if own_kind != kind or load_i8(value + 56) != dtype or load_i4(value + 24) != dimensions:
        return 0
    if not load_i4(value + 64) & _C_CONTIGUOUS:
        return 0
    own, differing = load_i8(value + 32), 0
    for i in range(0, 8 * dimensions, 8):
        differing |= load_i8(own + i) ^ load_i8(sizes + i)
    return 0 if differing else load_i8(value + _HEADER)


@cache
def is_known() -> bool:
    """Whether arrays of this Python and NumPy are laid out as this module takes for granted."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != _HEADER:
        return False
    block = np.arange(24.0).reshape(2, 3, 4)
    fitting = [block[0], block[1]]
    odd = [block, block[1, 2], np.ones(1, np.float32), block[:, :, 0].T, block[0].astype("f4")]
    return (
        all(find(each, (3, 4)) == each.ctypes.data for each in fitting)
        and not any(find(each, (3, 4)) for each in odd)
        and all(_finds_scalar(np.dtype(code)) for code in "bBhHiIlL?efd")
    )


def find(value: Any, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> int:
    """Where the numbers of an array, or a scalar, of this shape and dtype lie; 0 for any other."""
    wanted, sizes = np.dtype(dtype), np.array(shape, np.int64)
    scalar = 0 if shape else id(wanted.type)
    return int(
        numbers_at(
            *(id(value), id(np.ndarray), scalar, id(wanted), len(shape), int(sizes.ctypes.data))
        )
    )


def _finds_scalar(dtype: np.dtype[Any]) -> bool:
    value = np.ones((), dtype)[()]
    at = find(value, (), dtype)
    return at != 0 and ctypes.string_at(at, dtype.itemsize) == value.tobytes()
