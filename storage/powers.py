"""Powers of positive float64, several at once in one vector register.

libm takes a number at a time; these formulas have neither branches nor calls, so that the compiler
turns a loop over them into vector code. Relative error: below 1e-14 for what fits into float32.
"""

# ruff: noqa: ARG001 - numba prescribes the arguments of an intrinsic and of its generator
from __future__ import annotations

import math
from typing import Any

import numba.extending
import numpy as np
from llvmlite import ir
from numba import types

from storage.kernel import Floats, kernel

__all__ = ["power", "raise_to"]

intrinsic: Any = numba.extending.intrinsic

_FRACTION = np.int64(0x000FFFFFFFFFFFFF)
_ONE_BITS = np.int64(0x3FF0000000000000)
_ROOT_BITS = np.int64(0x3FE6A09E667F3BCD)
"""The bits of sqrt(1/2)."""
_LOG2E = 1.4426950408889634
_LN2 = 0.6931471805599453
_ODD = tuple(2.0 * _LOG2E / (2 * k + 1) for k in range(11))
"""log2((1 + t) / (1 - t)) = sum of _ODD[k] t^(2k + 1)."""
_EXPONENTIAL = tuple(_LN2**k / math.factorial(k) for k in range(14))
"""2^f = sum of _EXPONENTIAL[k] f^k."""


@intrinsic
def _bits(typingctx: Any, number: Any) -> Any:
    """The bits of a float64 as int64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _number(typingctx: Any, bits: Any) -> Any:
    """The float64 that has these bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@kernel
def _log2(number: float) -> float:
    """log2 of a positive normal number."""
    shifted = _bits(number) - _ROOT_BITS
    exponent = shifted >> 52
    mantissa = _number((shifted & _FRACTION) + _ROOT_BITS)
    t = (mantissa - 1.0) / (mantissa + 1.0)
    s = t * t
    total = _ODD[10]
    total = total * s + _ODD[9]
    total = total * s + _ODD[8]
    total = total * s + _ODD[7]
    total = total * s + _ODD[6]
    total = total * s + _ODD[5]
    total = total * s + _ODD[4]
    total = total * s + _ODD[3]
    total = total * s + _ODD[2]
    total = total * s + _ODD[1]
    total = total * s + _ODD[0]
    return float(np.float64(exponent) + t * total)


@kernel
def _exp2(power: float) -> float:
    """2 to a power in [-1000, 1000]."""
    whole = np.floor(power + 0.5)
    f = power - whole
    total = _EXPONENTIAL[13]
    total = total * f + _EXPONENTIAL[12]
    total = total * f + _EXPONENTIAL[11]
    total = total * f + _EXPONENTIAL[10]
    total = total * f + _EXPONENTIAL[9]
    total = total * f + _EXPONENTIAL[8]
    total = total * f + _EXPONENTIAL[7]
    total = total * f + _EXPONENTIAL[6]
    total = total * f + _EXPONENTIAL[5]
    total = total * f + _EXPONENTIAL[4]
    total = total * f + _EXPONENTIAL[3]
    total = total * f + _EXPONENTIAL[2]
    total = total * f + _EXPONENTIAL[1]
    total = total * f + _EXPONENTIAL[0]
    return float(total * _number((np.int64(whole) << 52) + _ONE_BITS))


@kernel
def power(number: float, exponent: float) -> float:
    """A number, 0 or positive and normal, to the power of `exponent` in [0, 1]; 0 stays 0."""
    if exponent == 1.0:
        return number
    if exponent == 0.5:
        return math.sqrt(number)
    return float(_exp2(exponent * _log2(number))) if number > 0.0 else 0.0


@kernel
def raise_to(exponent: float, numbers: Floats) -> None:
    """Set each of `numbers` to its `power`: the same bits."""
    if exponent == 1.0:
        return
    if exponent == 0.5:
        for i in range(numbers.size):
            numbers[i] = math.sqrt(numbers[i])
        return
    for i in range(numbers.size):
        raised = _exp2(exponent * _log2(numbers[i]))
        numbers[i] = raised if numbers[i] > 0.0 else 0.0
