"""Gymnasium spaces as columns: flattened to named leaves, described in JSON, nested back.

A nested space becomes one column a leaf, named with dots: ``observation.arm.angle``, ``action.0``.
Values are stored raw, in the leaf's own dtype (a Discrete with start 3 stores 3, 4, …).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import CorruptStoreError, SchemaMismatchError, UnsupportedSpaceError
from storage.space_checks import DTYPE_BYTES, check_space

if TYPE_CHECKING:
    from gymnasium import Space

__all__ = [
    "Leaf",
    "action_bounds",
    "flatten_space",
    "is_box",
    "leaf_values",
    "little_endian",
    "nest",
    "probabilities",
    "space_from_json",
    "space_size",
    "space_to_json",
]

_SUPPORTED = "Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of these"


def little_endian(dtype: Any) -> np.dtype[Any]:
    """The little-endian dtype, as numpy's own singleton (so that identity can be tested)."""
    text: str = np.dtype(dtype).newbyteorder("<").str
    return np.dtype(text)


@dataclass(frozen=True, slots=True)
class Leaf:
    """One fundamental space of a possibly nested space, and the column it is stored in."""

    name: str
    """The column's name."""
    space: Space[Any]
    """A Box, Discrete, MultiDiscrete or MultiBinary."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The space's dtype, little-endian."""
        return little_endian(self.space.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The space's shape: that of one row."""
        return tuple(int(size) for size in self.space.shape or ())

    @property
    def size(self) -> int:
        """Numbers in one row."""
        return int(np.prod(self.shape, dtype=np.int64))


def _refuse(space: object, name: str, reason: str) -> UnsupportedSpaceError:
    return UnsupportedSpaceError(
        f"the space {space!r} at {name!r} cannot be stored: {reason}. Supported are {_SUPPORTED}. "
        "Wrap the environment so that it shows one of these "
        "(gymnasium.wrappers.TransformObservation or TransformAction)."
    )


def _check_leaf(leaf: Leaf) -> Leaf:
    if leaf.dtype.name not in DTYPE_BYTES:
        raise _refuse(leaf.space, leaf.name, f"dtype {leaf.dtype} has no Zarr data type")
    if leaf.size == 0:
        raise _refuse(leaf.space, leaf.name, f"shape {leaf.shape} holds no numbers")
    return leaf


def _check_key(key: object, space: object, name: str) -> str:
    if not isinstance(key, str) or not key or key.startswith("__") or set(key) & set("./\\\0"):
        raise _refuse(
            space,
            name,
            f"the key {key!r} is no column name (a text without dots and slashes that does not "
            "start with two underscores)",
        )
    return key


def flatten_space(space: Space[Any], prefix: str) -> tuple[Leaf, ...]:
    """The leaves of a space in the space's own order, named from ``prefix`` with dots.

    Raises UnsupportedSpaceError, naming the space and its place.
    """
    from gymnasium import spaces

    if isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
        return (_check_leaf(Leaf(prefix, space)),)
    if isinstance(space, spaces.Dict):
        children = [(_check_key(key, space, prefix), child) for key, child in space.spaces.items()]
    elif isinstance(space, spaces.Tuple):
        children = [(str(index), child) for index, child in enumerate(space.spaces)]
    else:
        raise _refuse(space, prefix, f"a {type(space).__name__} has no column layout")
    if not children:
        raise _refuse(space, prefix, "it is empty")
    return tuple(
        leaf for key, child in children for leaf in flatten_space(child, f"{prefix}.{key}")
    )


def space_size(space: Space[Any], prefix: str) -> int:
    """Numbers in a value of a space; UnsupportedSpaceError as of `flatten_space`."""
    return sum(leaf.size for leaf in flatten_space(space, prefix))


def leaf_values(value: Any, leaves: Sequence[Leaf]) -> list[Any]:
    """The parts of a nested value, in the order of ``leaves``; not converted, not checked."""
    prefix = len(leaves[0].name.split(".")[0])
    return [_descend(value, leaf.name[prefix:].split(".")[1:], leaf.name) for leaf in leaves]


def _descend(value: Any, keys: list[str], name: str) -> Any:
    for key in keys:
        try:
            value = value[key] if isinstance(value, Mapping) else value[int(key)]
        except (KeyError, IndexError, TypeError, ValueError):
            raise SchemaMismatchError(
                f"no value for column {name!r}: the value given has no part {key!r} "
                f"(it is a {type(value).__name__}). Give a value of the environment's own space."
            ) from None
    return value


def nest(space: Space[Any], prefix: str, columns: Mapping[str, Any]) -> Any:
    """Arrange column values as the space is nested: dict for Dict, tuple for Tuple."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return {k: nest(child, f"{prefix}.{k}", columns) for k, child in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(nest(c, f"{prefix}.{i}", columns) for i, c in enumerate(space.spaces))
    return columns[prefix]


def is_box(leaf: Leaf) -> bool:
    """Whether the leaf is continuous in gymnasium's sense."""
    from gymnasium import spaces

    return isinstance(leaf.space, spaces.Box)


def probabilities(leaf: Leaf) -> int:
    """How many action probabilities a discrete leaf has (product spaces: concatenated)."""
    from gymnasium import spaces

    if isinstance(leaf.space, spaces.Discrete):
        return int(leaf.space.n)
    if isinstance(leaf.space, spaces.MultiDiscrete):
        return sum(leaf.space.nvec.reshape(-1).tolist())  # of any size: an int64 would wrap
    return 2 * leaf.size


def action_bounds(leaf: Leaf) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The least and greatest legal value of every number of a leaf, in its dtype and shape."""
    from gymnasium import spaces

    space = leaf.space
    low: Any
    high: Any
    if isinstance(space, spaces.Box):
        low, high = space.low, space.high
    elif isinstance(space, spaces.Discrete):
        low, high = space.start, space.start + space.n - 1
    elif isinstance(space, spaces.MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
    else:
        low, high = 0, 1
    return (
        np.array(np.broadcast_to(np.asarray(low, leaf.dtype), leaf.shape), order="C"),
        np.array(np.broadcast_to(np.asarray(high, leaf.dtype), leaf.shape), order="C"),
    )


def _number(value: Any) -> bool | int | float | str:
    item: bool | int | float = value.item()
    if isinstance(item, float) and not np.isfinite(item):
        return str(item)
    return item


def _array_to_json(array: np.ndarray[Any, Any]) -> Any:
    """One number when all are equal, else the flat list; infinities as text."""
    flat = [_number(value) for value in array.reshape(-1)]
    return flat[0] if len(set(flat)) == 1 else flat


def _array_from_json(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    numbers = value if isinstance(value, list) else [value]
    array = np.array([float(v) if isinstance(v, str) else v for v in numbers], dtype=dtype)
    return array.reshape(shape) if isinstance(value, list) else np.full(shape, array[0], dtype)


def space_to_json(space: Space[Any]) -> dict[str, Any]:
    """A supported space as JSON values that ``space_from_json`` turns back into an equal space."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        children = [[key, space_to_json(child)] for key, child in space.spaces.items()]
        return {"type": "Dict", "spaces": children}
    if isinstance(space, spaces.Tuple):
        return {"type": "Tuple", "spaces": [space_to_json(child) for child in space.spaces]}
    described: dict[str, Any] = {"type": type(space).__name__, "dtype": np.dtype(space.dtype).name}
    if isinstance(space, spaces.Box):
        described["shape"] = list(space.shape)
        described["low"] = _array_to_json(space.low)
        described["high"] = _array_to_json(space.high)
    elif isinstance(space, spaces.Discrete):
        described |= {"n": int(space.n), "start": int(space.start)}
    elif isinstance(space, spaces.MultiDiscrete):
        described |= {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
    elif isinstance(space, spaces.MultiBinary):
        described["n"] = int(space.n) if isinstance(space.n, (int, np.integer)) else list(space.n)
    else:
        raise _refuse(space, "space", f"a {type(space).__name__} has no description")
    return described


def space_from_json(described: Mapping[str, Any], name: str = "space") -> Space[Any]:
    """The space that ``space_to_json`` described; raises CorruptStoreError for anything else.

    ``name`` is what an error calls it.
    """
    check_space(described, name)
    try:
        return _space(described)
    except (ValueError, TypeError, OverflowError, AssertionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise CorruptStoreError(
            f"the space described at {name!r} cannot be made ({reason}); restore the store's "
            "metadata from a copy"
        ) from error


def _space(described: Mapping[str, Any]) -> Space[Any]:
    from gymnasium import spaces

    kind = described["type"]
    if kind == "Dict":
        return spaces.Dict({key: _space(child) for key, child in described["spaces"]})
    if kind == "Tuple":
        return spaces.Tuple([_space(child) for child in described["spaces"]])
    if kind == "MultiBinary":
        return spaces.MultiBinary(described["n"])
    dtype: Any = np.dtype(described["dtype"])
    if kind == "Discrete":
        return spaces.Discrete(described["n"], start=described["start"], dtype=dtype.type)
    if kind == "MultiDiscrete":
        start = np.array(described["start"], dtype=dtype)
        return spaces.MultiDiscrete(described["nvec"], dtype=dtype.type, start=start)
    shape = tuple(described["shape"])
    low = _array_from_json(described["low"], dtype, shape)
    high = _array_from_json(described["high"], dtype, shape)
    return spaces.Box(low, high, shape, dtype.type)
