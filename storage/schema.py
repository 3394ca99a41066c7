"""The columns of a store, derived once from the environment's spaces and fixed at creation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from storage.errors import ConfigError, CorruptStoreError, UnsupportedSpaceError
from storage.frame_stack import check_stack_settings, check_stacked, stacks_of
from storage.space_checks import DTYPE_BYTES, LARGEST_ROW, MOST_COLUMNS, is_shape
from storage.spaces import Leaf, flatten_space, is_box, little_endian, probabilities

if TYPE_CHECKING:
    from gymnasium import Space

__all__ = [
    "BehaviourFamily",
    "Column",
    "InfoKey",
    "Schema",
    "StackPadding",
    "check_names",
    "make_schema",
]

BehaviourFamily = Literal["gaussian", "categorical", "unknown"]
StackPadding = Literal["zero", "repeat"]
_LONGEST_NAME = 200
_FAMILIES = ("gaussian", "categorical", "unknown")


@dataclass(frozen=True, slots=True)
class Column:
    """A name, a little-endian dtype and the shape of one row."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(self.dtype.itemsize * np.prod(self.shape, dtype=np.int64))

    def to_json(self) -> list[Any]:
        """The column as [name, dtype, row shape]."""
        return [self.name, self.dtype.name, list(self.shape)]

    @classmethod
    def from_json(cls, described: list[Any]) -> Column:
        """The column that ``to_json`` described."""
        name, dtype, shape = described
        return cls(name, little_endian(dtype), tuple(shape))


@dataclass(frozen=True, slots=True)
class InfoKey:
    """A key of the environment's info that is kept, with a mask for the rows that had it.

    Row t holds the info that came together with observation t (row 0: from ``reset``).
    """

    key: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[Column, Column]:
        """The value's column and the mask's."""
        name = f"info.{self.key}"
        return Column(name, self.dtype, self.shape), Column(f"{name}.valid", np.dtype("?"))


@dataclass(frozen=True, slots=True)
class Schema:
    """What a row consists of."""

    columns: tuple[Column, ...]
    """All written-once columns, in the order of the commit log's checksums."""
    observation: tuple[Leaf, ...]
    """What the environment shows: with ``frame_stack``, stacks of what a row's column holds."""
    action: tuple[Leaf, ...]
    behaviour_family: BehaviourFamily
    behaviour_size: int
    """Numbers in a behaviour row: mean then stdev, or the probability of every action."""
    raw_action_size: int
    """Numbers in a raw action; 0 when the actions are not all continuous."""
    info: tuple[InfoKey, ...] = ()
    frame_stack: int | None = None
    """How many frames the environment's observation stacks; rows hold the newest one."""
    first_stack_padding: StackPadding | None = None
    """What an episode's stacks hold before its first frame: zeros, or that frame."""
    life_loss: bool = False

    def column(self, name: str) -> Column:
        """The column of that name; KeyError lists the names there are."""
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(column.name for column in self.columns)
        raise KeyError(f"no column {name!r}; this store has {names}")

    def shown(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What the environment showed, from an episode's first rows of an observation column.

        The rows themselves, or read-only stacks [n, k, …] of the frames that they are.
        """
        if self.frame_stack is None:
            return rows
        return stacks_of(rows, self.frame_stack, self.first_stack_padding)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row over all columns."""
        return sum(column.row_bytes for column in self.columns)

    def to_json(self) -> dict[str, Any]:
        """All that the spaces do not say already, plus the columns for other readers."""
        return {
            "columns": [column.to_json() for column in self.columns],
            "behaviour_family": self.behaviour_family,
            "info": [[item.key, item.dtype.name, list(item.shape)] for item in self.info],
            "frame_stack": self.frame_stack,
            "first_stack_padding": self.first_stack_padding,
            "life_loss": self.life_loss,
        }

    @classmethod
    def from_json(
        cls, described: Mapping[str, Any], observation: Space[Any], action: Space[Any]
    ) -> Schema:
        """The schema of a store with these spaces that ``to_json`` described.

        Raises CorruptStoreError when the columns described are not those that follow from it, and
        another SharpwaveError where no schema has such settings.
        """
        columns, info = described["columns"], described["info"]
        if max(len(columns), len(info)) > MOST_COLUMNS or not all(
            _is_described(each) for listed in (columns, info) for each in listed
        ):
            raise CorruptStoreError(
                f"there are more than {MOST_COLUMNS:,} columns, or one is not described by its "
                "name, dtype and shape; restore the store's metadata from a copy"
            )
        schema = make_schema(
            observation,
            action,
            behaviour=_text(described["behaviour_family"]),
            info={key: (dtype, tuple(shape)) for key, dtype, shape in info},
            frame_stack=described["frame_stack"],
            first_stack_padding=described["first_stack_padding"],
            life_loss=described["life_loss"],
        )
        check_names(schema)
        written = [Column.from_json(column) for column in columns]
        for column, derived in zip_longest(written, schema.columns):
            if column != derived:
                raise CorruptStoreError(
                    f"the store describes a column as {column}, its spaces and settings make it "
                    f"{derived}; restore the store's metadata from a copy"
                )
        return schema


def _is_described(column: Any) -> bool:
    """Whether a JSON value is [name, dtype, row shape] of a column."""
    if not isinstance(column, list) or len(column) != 3:
        return False
    name, dtype, shape = column
    return isinstance(name, str) and _text(dtype) in DTYPE_BYTES and (is_shape(shape) or not shape)


def _text(value: Any) -> str:
    """A JSON value that must be text; any other is none that is known."""
    return value if isinstance(value, str) else f"({type(value).__name__})"


def _family(action: tuple[Leaf, ...], asked: str | None) -> BehaviourFamily:
    continuous = {is_box(leaf) for leaf in action}
    natural: BehaviourFamily = "unknown"
    if continuous == {True}:
        natural = "gaussian"
    elif continuous == {False}:
        natural = "categorical"
    if asked is None or asked == natural:
        return natural
    if asked == "unknown":
        return "unknown"
    if asked not in _FAMILIES:
        raise ConfigError(f"behaviour={asked!r}: choose one of {', '.join(_FAMILIES)}")
    raise ConfigError(
        f"behaviour={asked!r} does not fit the action space, whose policies are {natural}; "
        f"leave it out, or say behaviour='unknown'"
    )


def _behaviour_size(action: tuple[Leaf, ...], family: BehaviourFamily) -> int:
    if family == "gaussian":
        return 2 * sum(leaf.size for leaf in action)
    if family == "categorical":
        return sum(probabilities(leaf) for leaf in action)
    return 0


def _info_key(key: str, kind: Any) -> InfoKey:
    dtype, shape = kind if isinstance(kind, tuple) else (kind, ())
    resolved = little_endian(dtype)
    usable = key and not set(key) & set("./\\\0")
    if not usable or resolved.name not in DTYPE_BYTES or 0 in shape:
        raise ConfigError(
            f"info key {key!r} of dtype {resolved} and shape {shape} cannot be a column: give a "
            "name without dots and slashes and a dtype of numbers, or (dtype, shape)"
        )
    return InfoKey(key, resolved, tuple(shape))


def _space_columns(
    observation: tuple[Leaf, ...], action: tuple[Leaf, ...], frame_stack: int | None
) -> list[Column]:
    """The columns of the spaces; stacked observations are stored a frame a row."""
    first = 0 if frame_stack is None else 1
    seen = [Column(leaf.name, leaf.dtype, leaf.shape[first:]) for leaf in observation]
    return seen + [Column(leaf.name, leaf.dtype, leaf.shape) for leaf in action]


def _standard_columns(raw_action_size: int, behaviour_size: int) -> list[Column]:
    optional = [Column("raw_action", np.dtype("<f4"), (raw_action_size,))]
    behaviour = [Column("behaviour", np.dtype("<f4"), (behaviour_size,))]
    return [
        *(optional if raw_action_size else []),
        Column("reward", np.dtype("<f8")),
        Column("terminated", np.dtype("?")),
        Column("truncated", np.dtype("?")),
        Column("kind", np.dtype("u1")),
        *(behaviour if behaviour_size else []),
        Column("behaviour_kind", np.dtype("u1")),
        Column("policy_update", np.dtype("<i8")),
    ]


def check_names(schema: Schema) -> None:
    """Raise UnsupportedSpaceError for a column whose name a file system may not take."""
    for column in schema.columns:
        size = len(column.name.encode(errors="surrogatepass"))
        if not column.name.isprintable():
            raise UnsupportedSpaceError(
                f"the column {column.name[:60]!r} has characters in its name that cannot be "
                "printed; rename the key of the space or info in a wrapper"
            )
        if size > _LONGEST_NAME:
            raise UnsupportedSpaceError(
                f"the column {column.name[:60]!r}… has a name of {size} bytes; columns are folders "
                f"whose names hold at most {_LONGEST_NAME} here. Use shorter keys in the space or "
                "info, or rename them in a wrapper."
            )


def _check_size(
    observation: tuple[Leaf, ...], action: tuple[Leaf, ...], columns: list[Column]
) -> None:
    """Raise UnsupportedSpaceError for more columns, or a longer row, than a store takes."""
    sizes = {column.name: _bytes(column.dtype, column.shape) for column in columns}
    parts = (observation, action)
    shown = [sum(_bytes(leaf.dtype, leaf.shape) for leaf in leaves) for leaves in parts]
    if len(columns) > MOST_COLUMNS:
        raise UnsupportedSpaceError(
            f"the spaces and info keys make {len(columns):,} columns, and a store has "
            f"{MOST_COLUMNS:,} at most; put numbers of one kind into one array in a wrapper"
        )
    if max(sum(sizes.values()), *shown) > LARGEST_ROW:
        largest = max(sizes, key=lambda name: sizes[name])
        raise UnsupportedSpaceError(
            f"a row takes {sum(sizes.values()):,} bytes, and a store's at most {LARGEST_ROW:,}; "
            f"{largest!r} has most of them, {sizes[largest]:,}. Show less in a wrapper"
            + (", or say behaviour='unknown'" if largest == "behaviour" else "")
        )


def _bytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """Bytes of a row, however many."""
    return dtype.itemsize * math.prod(int(size) for size in shape)


def make_schema(
    observation_space: Space[Any],
    action_space: Space[Any],
    *,
    behaviour: str | None = None,
    info: Mapping[str, Any] | None = None,
    frame_stack: int | None = None,
    first_stack_padding: StackPadding | None = None,
    life_loss: bool = False,
) -> Schema:
    """Derive the columns from the spaces.

    ``behaviour`` is the family of the policies' distributions: by default "gaussian" for
    continuous actions, "categorical" for discrete ones, "unknown" for mixtures. ``info`` maps
    info keys to a dtype or (dtype, shape). With ``frame_stack`` every part of the observation
    must stack that many frames on its first axis. Raises UnsupportedSpaceError or ConfigError.
    """
    check_stack_settings(frame_stack, first_stack_padding)
    if not isinstance(life_loss, bool):
        raise ConfigError(f"life_loss={life_loss!r}: give True or False")
    observation = flatten_space(observation_space, "observation")
    if frame_stack is not None:
        check_stacked(observation, frame_stack)
    action = flatten_space(action_space, "action")
    family = _family(action, behaviour)
    raw_size = sum(leaf.size for leaf in action) if all(map(is_box, action)) else 0
    behaviour_size = _behaviour_size(action, family)
    kept = tuple(_info_key(key, kind) for key, kind in (info or {}).items())
    columns = _space_columns(observation, action, frame_stack)
    columns += _standard_columns(raw_size, behaviour_size)
    if life_loss:
        columns.append(Column("life_lost", np.dtype("?")))
    columns += [column for item in kept for column in item.columns]
    _check_size(observation, action, columns)
    return Schema(
        columns=tuple(columns),
        observation=observation,
        action=action,
        behaviour_family=family,
        behaviour_size=behaviour_size,
        raw_action_size=raw_size,
        info=kept,
        frame_stack=frame_stack,
        first_stack_padding=first_stack_padding,
        life_loss=life_loss,
    )
