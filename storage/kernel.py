"""Numba kernels: one decorator, and the address arithmetic that they share.

Kernels reach rows of mapped columns by plain addresses (an int64 each), so that one compiled
kernel serves every dtype and every number of segments. Nothing here checks an address: the
window's tables are the only source of them, and they hold addresses of mapped rows alone.
"""

# ruff: noqa: ARG001 - numba prescribes the arguments of an intrinsic and of its generator
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba.core.cgutils
import numba.extending
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types

from storage.kernel_cache import keeping_code_in

__all__ = [
    "Bytes",
    "Floats",
    "Floats32",
    "Index",
    "Integers",
    "Integers32",
    "address_of",
    "copy_bytes",
    "kernel",
    "load_f4",
    "load_f8",
    "load_i1",
    "load_i2",
    "load_i4",
    "load_i8",
    "load_u1",
    "load_u2",
    "load_u4",
    "load_u8",
    "multiply_high",
    "prefetch",
    "signed_kernel",
    "store_f4",
    "store_f8",
    "store_i4",
    "store_i8",
    "store_u1",
    "summing_kernel",
]

Function = TypeVar("Function", bound=Callable[..., Any])
Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Integers32 = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]

Index = Any
"""An int, or an int64 once inside a kernel."""

cgutils: Any = numba.core.cgutils
intrinsic: Any = numba.extending.intrinsic


def kernel(function: Function) -> Function:
    """Compile `function` at its first call, keep the machine code on disk, release the GIL.

    Division follows IEEE 754 (no ZeroDivisionError), arithmetic is never reassociated: a kernel
    gives the same bits on every call. Where no folder for the machine code can be written, it is
    compiled anew in each process.
    """
    return _compiled(function, {"nogil": True})


def summing_kernel(function: Function) -> Function:
    """A `kernel` whose sums may be reassociated into vectors: the same bits on one machine only."""
    return _compiled(function, {"nogil": True, "fastmath": {"reassoc", "contract"}})


def signed_kernel(signature: str) -> Callable[[Any], Any]:
    """Compile at once, for one signature; the interpreter lock is kept."""

    def compile_it(function: Any) -> Any:
        return _compiled(function, {}, signature)

    return compile_it


def _compiled(function: Function, special: dict[str, Any], *signature: str) -> Function:
    compile_with: Any = njit
    options: dict[str, Any] = {"error_model": "numpy"} | special
    try:
        with keeping_code_in(function):
            return cast(Function, compile_with(*signature, cache=True, **options)(function))
    except RuntimeError:
        return cast(Function, compile_with(*signature, **options)(function))


def address_of(array: Any) -> int:
    """The address of an array's first byte; the caller keeps the array alive."""
    return int(array.__array_interface__["data"][0])


def _pointer(builder: Any, address: Any, element: Any) -> Any:
    return builder.inttoptr(address, element.as_pointer())


def _load(number: Any) -> Any:
    """An intrinsic `load(address) -> number`, whatever the alignment."""

    @intrinsic
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            element = context.get_value_type(number)
            return builder.load(_pointer(builder, arguments[0], element), align=1)

        return number(types.intp), codegen

    return load


def _store(number: Any) -> Any:
    """An intrinsic `store(address, value)`, whatever the alignment."""

    @intrinsic
    def store(typingctx: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            element = context.get_value_type(number)
            builder.store(arguments[1], _pointer(builder, arguments[0], element), align=1)
            return context.get_dummy_value()

        return types.void(types.intp, number), codegen

    return store


load_i1 = _load(types.int8)
load_i2 = _load(types.int16)
load_u1 = _load(types.uint8)
load_u2 = _load(types.uint16)
load_u4 = _load(types.uint32)
load_u8 = _load(types.uint64)
load_i4 = _load(types.int32)
load_i8 = _load(types.int64)
load_f4 = _load(types.float32)
load_f8 = _load(types.float64)
store_u1 = _store(types.uint8)
store_i4 = _store(types.int32)
store_i8 = _store(types.int64)
store_f4 = _store(types.float32)
store_f8 = _store(types.float64)


@intrinsic
def copy_bytes(typingctx: Any, target: Any, source: Any, count: Any) -> Any:
    """Copy `count` bytes between two addresses that do not overlap."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8)
        target, source, count = arguments
        destination = _pointer(builder, target, byte)
        cgutils.raw_memcpy(builder, destination, _pointer(builder, source, byte), count, 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), codegen


@intrinsic
def prefetch(typingctx: Any, address: Any) -> Any:
    """Ask for the cache line at `address`; never faults, whatever the address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), word, word, word])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        hints = [ir.Constant(word, hint) for hint in (0, 3, 1)]  # read, keep close, data
        builder.call(function, [_pointer(builder, arguments[0], byte), *hints])
        return context.get_dummy_value()

    return types.void(types.intp), codegen


@intrinsic
def multiply_high(typingctx: Any, left: Any, right: Any) -> Any:
    """The upper 64 bits of the product of two uint64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen
