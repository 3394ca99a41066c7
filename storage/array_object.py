"""NumPy arrays as kernels see them: the fields of the object itself, read at its address.

A kernel that takes an array as an argument is compiled for its dtype, and its array is taken apart
field by field at each call. Here one kernel takes any array by ``id``, and looks only at what it
needs. The layout is that of CPython's and NumPy's C headers (``PyArrayObject_fields``); `is_known`
compares it with real arrays before anybody relies on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from storage.kernel import load_i4, load_i8
from storage.kernel_cache import keeping_code_in

__all__ = ["compiled", "data_address", "is_known", "is_like"]

_HEADER = 16
"""Bytes of every object of CPython's before its own fields: reference count and type."""
_C_CONTIGUOUS = 1


def compiled(signature: str) -> Callable[[Any], Any]:
    """Compile now, for one signature; keep the machine code where a folder can be written."""

    def compile_it(function: Any) -> Any:
        try:
            with keeping_code_in(function):
                return njit(signature, cache=True, error_model="numpy")(function)
        except RuntimeError:
            return njit(signature, error_model="numpy")(function)

    return compile_it


@compiled("int64(int64)")
def data_address(array):  # type: ignore[no-untyped-def]
    """Where the numbers of an array lie."""
    return load_i8(array + 16)


@compiled("boolean(int64, int64, int64, int64, int64)")
def is_like(array, kind, dtype, dimensions, sizes):  # type: ignore[no-untyped-def]
    """Whether an object is an array of this type, dtype object and shape, in one piece.

    ``kind`` and ``dtype`` are ids, ``sizes`` is the address of ``dimensions`` int64 numbers.
    """
    if load_i8(array + 8) != kind:
        return False
    if load_i8(array + 56) != dtype or load_i4(array + 24) != dimensions:
        return False
    if not load_i4(array + 64) & _C_CONTIGUOUS:
        return False
    own = load_i8(array + 32)
    differing = 0
    for i in range(0, 8 * dimensions, 8):
        differing |= load_i8(own + i) ^ load_i8(sizes + i)
    return differing == 0


@cache
def is_known() -> bool:
    """Whether arrays of this Python and NumPy are laid out as this module takes for granted."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != _HEADER:
        return False
    block = np.arange(24.0).reshape(2, 3, 4)
    samples = [block, block[1], block[1, 2], np.ones(1, np.float32), np.array(7, np.int8)]
    if any(data_address(id(each)) != each.ctypes.data for each in samples):
        return False
    wanted = np.array([3, 4], np.int64)
    fits = [_fits(each, wanted) for each in (*samples, block[0].astype("f4"), block[:, :, 0].T)]
    return fits == [False, True, False, False, False, False, False]


def _fits(array: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]) -> bool:
    dtype = np.dtype(np.float64)
    return bool(is_like(id(array), id(np.ndarray), id(dtype), sizes.size, int(sizes.ctypes.data)))
