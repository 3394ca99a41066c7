"""What a step's values become in their columns: nothing but what was given, or an error."""

from __future__ import annotations

from typing import Any

import numpy as np

from storage.errors import SchemaMismatchError

__all__ = ["exact", "flag", "integer", "number", "rounded"]

_NO_ARRAY = (TypeError, ValueError, RuntimeError, OverflowError)
"""What making an array raises; a RuntimeError comes from tensors that record their gradient."""
_NUMPY_BOOL = np.bool_
_INT64 = np.iinfo(np.int64)


def exact(value: Any, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """The value in a column's dtype and shape; SchemaMismatchError when that changes it."""
    array = _array(value, name)
    if array.dtype == dtype and array.shape == shape:
        return array
    if array.shape != shape or array.dtype.kind not in "biuf":
        raise SchemaMismatchError(
            f"{name}: got a value of shape {array.shape} and dtype {array.dtype}, the column holds "
            f"shape {shape} and dtype {dtype}. Give what the environment's space declares."
        )
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
        same = _is_same(array, cast)
    if not same:
        raise SchemaMismatchError(
            f"{name}: {array.dtype} values cannot be stored as {dtype} without changing them "
            f"(first is {array.flat[0]!r}). Declare the space in the dtype that the environment "
            "returns, or convert in a wrapper."
        )
    return cast


def rounded(value: Any, name: str, size: int) -> np.ndarray[Any, Any]:
    """Policy numbers as float32 (size,); SchemaMismatchError for another count, or no numbers."""
    array = _array(value, name)
    if array.dtype.kind not in "biuf":
        raise SchemaMismatchError(
            f"{name}: {value!r} is no array of numbers (its dtype is {array.dtype}); give {size} "
            "real numbers"
        )
    if array.shape != (size,):
        raise SchemaMismatchError(
            f"{name}: got shape {array.shape}, the column holds ({size},) float32 numbers"
        )
    with np.errstate(all="ignore"):
        return array.astype(np.float32)


def number(value: Any, name: str) -> float:
    """A real scalar as float64; SchemaMismatchError when there is none that equals it."""
    if isinstance(value, (float, np.float32, np.float16)):
        return float(value)
    if isinstance(value, (int, np.integer)):
        return _whole_number(int(value), name)
    remedy = "give a real number that a float64 holds exactly"
    return float(_scalar(value, name, "number", np.float64, remedy))


def integer(value: Any, name: str) -> int:
    """A whole scalar that an int64 holds; SchemaMismatchError for anything else."""
    remedy = "give a whole number that an int64 holds"
    if not isinstance(value, (int, np.integer)):
        return int(_scalar(value, name, "integer", np.int64, remedy))
    whole = int(value)
    if not _INT64.min <= whole <= _INT64.max:
        raise SchemaMismatchError(f"{name}: {whole} is too large; {remedy}")
    return whole


def flag(value: Any, name: str) -> bool:
    """True or False, from a bool, 0 or 1, or an array of one; SchemaMismatchError for all else."""
    if type(value) is _NUMPY_BOOL or value is True or value is False:
        return bool(value)
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype == np.bool_:
        value = value.reshape(())
    return bool(_scalar(value, name, "flag", np.bool_, "give True or False"))


def _array(value: Any, name: str) -> np.ndarray[Any, Any]:
    """The value as an array, in its own dtype."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise SchemaMismatchError(
            f"{name}: a masked array, whose mask no column can hold; fill it first "
            "(numpy.ma.filled)"
        )
    try:
        return np.asarray(value)
    except _NO_ARRAY as error:
        raise SchemaMismatchError(f"{name}: {value!r} is no array ({error})") from None


def _scalar(value: Any, name: str, noun: str, kind: type[np.generic], remedy: str) -> Any:
    try:
        return exact(value, name, np.dtype(kind), ())
    except SchemaMismatchError:
        raise SchemaMismatchError(f"{name}: {value!r} is no {noun}; {remedy}") from None


def _whole_number(whole: int, name: str) -> float:
    try:
        real = float(whole)
    except OverflowError:
        real = np.inf
    if real != whole:
        size = f"{whole}" if abs(whole) < 1 << 64 else f"an integer of {whole.bit_length()} bits"
        raise SchemaMismatchError(
            f"{name}: {size} has no equal float64; scale it down or round it in a wrapper"
        )
    return real


def _is_same(array: np.ndarray[Any, Any], cast: np.ndarray[Any, Any]) -> bool:
    """Whether a cast array holds the numbers that it was cast from."""
    if array.dtype.kind in "iu" and cast.dtype.kind == "f":
        return _is_integer_kept(array, cast)
    if array.dtype.kind == "f" and cast.dtype.kind in "iu":
        limits = np.iinfo(cast.dtype)
        # Beyond the limits a cast is whatever the machine makes of it.
        if not ((array >= float(limits.min)) & (array < float(limits.max + 1))).all():
            return False
    return np.array_equal(cast, array, equal_nan=array.dtype.kind == "f")


def _is_integer_kept(array: np.ndarray[Any, Any], cast: np.ndarray[Any, Any]) -> bool:
    """The same for integers as floats: NumPy would compare both as floats, hence as equal."""
    all_exact = 1 << (np.finfo(cast.dtype).nmant + 1)
    large = (array > all_exact) | (array < -all_exact)
    if not large.any():
        return True
    if not np.isfinite(cast).all():
        return False
    pairs = zip(array[large].tolist(), cast[large].tolist(), strict=True)
    return all(whole == real for whole, real in pairs)
