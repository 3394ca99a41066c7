"""A small language for what nested plain values must look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

__all__ = [
    "Check",
    "StructureError",
    "array",
    "finite",
    "flag",
    "listed",
    "mapping",
    "number",
    "optional",
    "record",
    "tensor",
    "text",
    "whole",
]

Check = Callable[[Any, str], None]
"""Called with a value and its place, such as "counters.updates"; raises StructureError."""

_ARRAY = "__array__"


class StructureError(Exception):
    """A value is not what it must be; the message names its place."""


def whole(least: int = 0, end: int = 2**63) -> Check:
    """A whole number from ``least`` to below ``end``."""

    def check(value: Any, place: str) -> None:
        if type(value) is not int or not least <= value < end:
            raise _misfit(value, place, f"a whole number from {least}")

    return check


def number(least: float = -float("inf"), most: float = float("inf")) -> Check:
    """A number that is not NaN, from ``least`` to ``most``."""

    def check(value: Any, place: str) -> None:
        if type(value) not in (int, float) or not least <= value <= most:
            wanted = "a number" if least < 0 else f"a number from {least:g}"
            raise _misfit(value, place, wanted + ("" if most > 2**53 else f" to {most:g}"))

    return check


def text(value: Any, place: str) -> None:
    """Text."""
    if not isinstance(value, str):
        raise _misfit(value, place, "text")


def flag(value: Any, place: str) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise _misfit(value, place, "true or false")


def optional(check: Check) -> Check:
    """None, or what ``check`` takes."""

    def wrapped(value: Any, place: str) -> None:
        if value is not None:
            check(value, place)

    return wrapped


def listed(check: Check, least: int = 0, most: int = 2**63) -> Check:
    """A list or tuple of ``least`` to ``most`` values that ``check`` takes."""

    def wrapped(value: Any, place: str) -> None:
        if not isinstance(value, list | tuple):
            raise _misfit(value, place, "a list")
        if not least <= len(value) <= most:
            raise StructureError(f"{place} is a list of {len(value)}")
        for index, each in enumerate(value):
            check(each, f"{place}[{index}]")

    return wrapped


def mapping(check: Check) -> Check:
    """A mapping from names or numbers to what ``check`` takes."""

    def wrapped(value: Any, place: str) -> None:
        if not isinstance(value, Mapping):
            raise _misfit(value, place, "a mapping")
        for key, each in value.items():
            check(each, f"{place}.{key}")

    return wrapped


def record(required: Mapping[str, Check], others: Mapping[str, Check] | None = None) -> Check:
    """A mapping that has the ``required`` names, and may have ``others`` and more."""

    def wrapped(value: Any, place: str) -> None:
        if not isinstance(value, Mapping):
            raise _misfit(value, place, "a mapping")
        for name, check in required.items():
            if name not in value:
                raise StructureError(f"{place} lacks {name}".lstrip())
            check(value[name], f"{place}.{name}".lstrip("."))
        for name, check in (others or {}).items():
            if name in value:
                check(value[name], f"{place}.{name}".lstrip("."))

    return wrapped


def tensor(value: Any, place: str) -> None:
    """A tensor."""
    if not isinstance(value, torch.Tensor):
        raise _misfit(value, place, "a tensor")


def finite(value: Any, place: str) -> None:
    """A tensor without NaN and infinity."""
    tensor(value, place)
    if value.is_floating_point() and not bool(torch.isfinite(value).all()):
        raise StructureError(f"{place} holds NaN or infinity")


def array(dtype: str, shape: tuple[int | None, ...], least: float | None = None) -> Check:
    """An array as ``plain_state.as_tensors`` keeps it; None in ``shape`` is any length.

    Floating-point arrays hold no NaN; with ``least`` no array holds a lesser number.
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, Mapping) or value.get(_ARRAY) != dtype:
            raise _misfit(value, place, f"an array of {dtype}")
        data = value.get("data")
        if not isinstance(data, torch.Tensor) or not _fits(data, dtype, shape):
            raise _misfit(data, place, f"{dtype} of shape {shape}")
        if bool(torch.isnan(data).any()):
            raise StructureError(f"{place} holds NaN")
        if least is not None and data.numel() and float(data.min()) < least:
            raise StructureError(f"{place} holds {float(data.min()):g}; {least:g} is the least")

    return check


_TORCH = {
    "<f4": torch.float32,
    "<f8": torch.float64,
    "<i8": torch.int64,
    "<u4": torch.int32,
    "|u1": torch.uint8,
}
"""How each dtype travels in a checkpoint."""


def _fits(data: torch.Tensor, dtype: str, shape: tuple[int | None, ...]) -> bool:
    lengths = zip(data.shape, shape, strict=False)
    return (
        data.dtype is _TORCH[dtype]
        and data.dim() == len(shape)
        and all(wanted in (None, found) for found, wanted in lengths)
    )


def _misfit(value: Any, place: str, wanted: str) -> StructureError:
    found = f"{type(value).__name__} {value}" if isinstance(value, int | float | str) else ""
    if isinstance(value, torch.Tensor):
        found = f"{value.dtype} of shape {tuple(value.shape)}"
    return StructureError(f"{place} is {(found or type(value).__name__)[:80]}, not {wanted}")
