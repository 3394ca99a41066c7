"""What the description of a space may say, checked before anything is made of it.

A description comes from a file that anybody may have written. Making an array of a shape that it
names could take all memory, so sizes are counted first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from storage.errors import CorruptStoreError

__all__ = ["DTYPE_BYTES", "LARGEST_ROW", "MOST_COLUMNS", "check_space", "is_shape"]

DTYPE_BYTES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
}
"""The dtypes that a column can have, and their bytes."""
LARGEST_ROW = 64 * 2**20
"""Bytes that all columns of one row take at most."""
MOST_COLUMNS = 1024
"""Columns that a store has at most: each is a file and a map in every segment."""
_DEEPEST = 100
_INT64 = range(-(2**63), 2**63)


def is_shape(value: Any) -> bool:
    """Whether a JSON value is a list of sizes from 1."""
    return isinstance(value, list) and len(value) <= 32 and all(_is_int(n, 1) for n in value)


def check_space(described: Any, name: str) -> None:
    """Raise CorruptStoreError unless a space can be made of the description, and rows hold it."""
    leaves, size = 0, 0
    waiting = [(described, name, 0)]
    while waiting:
        space, place, depth = waiting.pop()
        if not isinstance(space, Mapping) or depth > _DEEPEST:
            raise _wrong(place, f"it is no description, or nested more than {_DEEPEST} deep")
        if space.get("type") in ("Dict", "Tuple"):
            waiting += [(*child, depth + 1) for child in _children(space, place)]
        else:
            leaves, size = leaves + 1, size + _leaf_bytes(space, place)
        if leaves + len(waiting) > MOST_COLUMNS or size > LARGEST_ROW:
            raise _wrong(
                place,
                f"it has more than {MOST_COLUMNS:,} parts, or a row of it more than "
                f"{LARGEST_ROW:,} bytes",
            )


def _children(space: Mapping[str, Any], place: str) -> list[tuple[Any, str]]:
    children = space.get("spaces")
    if not isinstance(children, list) or not children:
        raise _wrong(place, "its parts are no list, or there are none")
    if space["type"] == "Tuple":
        return [(child, f"{place}.{index}") for index, child in enumerate(children)]
    keys = [each[0] if isinstance(each, list) and len(each) == 2 else None for each in children]
    if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
        raise _wrong(place, "its parts are no pairs of a key and a space, or a key comes twice")
    return [(child, f"{place}.{key}"[:200]) for key, child in children]


def _leaf_bytes(space: Mapping[str, Any], place: str) -> int:
    """Bytes of a row of a space that is no Dict or Tuple."""
    kind = space.get("type")
    if kind == "MultiBinary":
        n = space.get("n")
        if not (_is_int(n, 1) or (is_shape(n) and n)):
            raise _wrong(place, f"n is {_short(n)}, no number or shape")
        return math.prod(n) if isinstance(n, list) else int(n)  # type: ignore[arg-type]
    dtype = space.get("dtype")
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        raise _wrong(place, f"dtype {_short(dtype)} is not stored")
    counts = {"Box": _box_numbers, "Discrete": _discrete, "MultiDiscrete": _multi_discrete}
    if kind not in counts:
        raise _wrong(place, f"spaces of type {_short(kind)} are not known")
    return counts[kind](space, place) * DTYPE_BYTES[dtype]


def _box_numbers(space: Mapping[str, Any], place: str) -> int:
    shape = space.get("shape")
    if not is_shape(shape):
        raise _wrong(place, f"{_short(shape)} is no shape")
    numbers = math.prod(shape)  # type: ignore[arg-type]
    for bound in ("low", "high"):
        values = space.get(bound)
        listed = values if isinstance(values, list) else [values]
        if not all(_is_bound(value) for value in listed):
            raise _wrong(place, f"{bound} holds what is no number")
        if isinstance(values, list) and len(values) != numbers:
            raise _wrong(place, f"{bound} has {len(values):,} numbers, the shape {numbers:,}")
    return numbers


def _is_bound(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("inf", "-inf")
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int)


def _discrete(space: Mapping[str, Any], place: str) -> int:
    _check_choices(space.get("n"), space.get("start"), place)
    return 1


def _multi_discrete(space: Mapping[str, Any], place: str) -> int:
    counts, starts = _flat(space.get("nvec"), place), _flat(space.get("start"), place)
    if len(counts) != len(starts) or not counts:
        raise _wrong(place, f"nvec has {len(counts):,} numbers, start {len(starts):,}")
    for n, start in zip(counts, starts, strict=True):
        _check_choices(n, start, place)
    return len(counts)


def _check_choices(n: Any, start: Any, place: str) -> None:
    numbers = _is_int(n, 1) and _is_int(start, _INT64.start)
    if not numbers or n not in _INT64 or start + n - 1 not in _INT64:
        raise _wrong(place, f"{_short(n)} choices from {_short(start)} are none that 64 bits hold")


def _flat(values: Any, place: str) -> list[Any]:
    """The numbers of nested lists, in order."""
    flat, waiting, lists = [], [values], 0
    while waiting:
        value = waiting.pop()
        if not isinstance(value, list):
            flat.append(value)
            continue
        lists += 1
        if lists > MOST_COLUMNS * _DEEPEST:
            raise _wrong(place, "its numbers are nested too deep")
        waiting += reversed(value)
    return flat if isinstance(values, list) else []


def _is_int(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _short(value: Any) -> str:
    if isinstance(value, int):
        return f"{value}" if abs(value) < 10**20 else "a number of more than 20 digits"
    return repr(value[:40] if isinstance(value, (str, list)) else type(value).__name__)


def _wrong(place: str, why: str) -> CorruptStoreError:
    return CorruptStoreError(
        f"the space described at {place!r} cannot be: {why}; restore the store's metadata from a "
        "copy"
    )
