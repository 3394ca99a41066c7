"""Values that no writer stores: a rule a fault, each over the rows of one column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from storage.layout import BehaviourKind, Ending, RowKind
from storage.schema import Column, Schema
from storage.spaces import Leaf, action_bounds
from storage.verification.blocks import Block
from storage.verification.row_places import Place, RowPlaces

__all__ = ["Rule", "rules_of"]

Mask = np.ndarray[Any, Any]
"""bool, one a row."""


class Rule(NamedTuple):
    """A kind of fault, what it says of the rows that have it, and how they are found."""

    kind: str
    what: str
    bad: Callable[[Block], Mask]
    """The rows of a block that break the rule; called for each block of the column, in order."""


def rules_of(column: Column, schema: Schema, places: RowPlaces) -> list[Rule]:
    """The rules of one column; those of ``behaviour`` need another column, see BehaviourRules."""
    return list(_rules(column, schema, places))


def _rules(column: Column, schema: Schema, places: RowPlaces) -> Iterator[Rule]:
    seen = {leaf.name: leaf for leaf in schema.observation}
    acted = {leaf.name: leaf for leaf in schema.action}
    if column.dtype.kind == "b":
        what = f"{column.name} is neither 0 nor 1"
        yield Rule("truth-value", what, _of_episodes(places, _no_truth_value))
    if column.name in seen:
        yield from _observed(seen[column.name], schema, places)
    elif column.name in acted:
        yield from _acted(acted[column.name], places)
    elif column.name == "raw_action":
        yield Rule("not-finite", "raw_action is not finite", _steps(places, _partly_finite))
    elif column.name in ("terminated", "truncated"):
        yield Rule(
            "flags",
            f"{column.name} does not fit how the episode ended",
            _flags(places, column.name),
        )
    elif column.name in _OWN:
        yield from _OWN[column.name](places)
    blank = _blank(column, schema)
    if blank is not None:
        what = f"{column.name} of a closing row is not {blank}"
        yield Rule("closing-row", what, _closing(places, blank))


def _blank(column: Column, schema: Schema) -> float | None:
    """What a closing row holds in the column; None where that is not fixed."""
    if column.name in {leaf.name for leaf in schema.observation} or column.name == "kind":
        return None
    if column.name.startswith("info.") or column.name in ("terminated", "truncated"):
        return None
    return {"behaviour": np.nan, "policy_update": -1}.get(column.name, 0)


def _any(mask: np.ndarray[Any, Any]) -> Mask:
    """Which rows have any number that the mask marks."""
    return np.asarray(mask.any(axis=tuple(range(1, mask.ndim))))


def _place(places: RowPlaces, block: Block) -> np.ndarray[Any, Any]:
    return places.place[block.first : block.end]


def _no_truth_value(rows: np.ndarray[Any, Any]) -> Mask:
    return _any(rows.view(np.uint8) > 1)


def _steps(
    places: RowPlaces, bad: Callable[[np.ndarray[Any, Any]], Mask]
) -> Callable[[Block], Mask]:
    """Among steps, last ones included."""

    def among(block: Block) -> Mask:
        place = _place(places, block)
        asked = (place == Place.STEP) | (place == Place.LAST_STEP)
        return np.asarray(bad(block.rows) & asked)

    return among


def _of_episodes(
    places: RowPlaces, bad: Callable[[np.ndarray[Any, Any]], Mask]
) -> Callable[[Block], Mask]:
    """Among the rows of episodes, closing ones included."""
    return lambda block: bad(block.rows) & places.counting(block.first, block.end)


def _closing(places: RowPlaces, blank: float) -> Callable[[Block], Mask]:
    def among(block: Block) -> Mask:
        closing = _place(places, block) == Place.CLOSING
        rows = block.rows[closing]
        wrong = ~np.isnan(rows) if np.isnan(blank) else rows != blank
        bad = np.zeros(len(closing), bool)
        bad[closing] = _any(wrong)
        return bad

    return among


def _not_finite(rows: np.ndarray[Any, Any]) -> Mask:
    return _any(~np.isfinite(rows))


def _partly_finite(rows: np.ndarray[Any, Any]) -> Mask:
    """Rows that are neither finite nor, as where nobody gave a draw, all NaN."""
    none = np.isnan(rows).all(axis=tuple(range(1, rows.ndim)))
    return np.asarray(_not_finite(rows) & ~none)


def _outside(leaf: Leaf, frame: bool) -> Callable[[np.ndarray[Any, Any]], Mask] | None:
    """Which rows lie outside the leaf's bounds; None where nothing can."""
    low, high = action_bounds(leaf)
    if frame:
        low, high = low[-1], high[-1]
    if leaf.dtype.kind == "b":
        return None
    if leaf.dtype.kind == "f":
        unbounded = np.isneginf(low).all() and np.isposinf(high).all()
    else:
        limits = np.iinfo(leaf.dtype)
        unbounded = (low == limits.min).all() and (high == limits.max).all()
    if unbounded:
        return None
    return lambda rows: _any((rows < low) | (rows > high))


def _observed(leaf: Leaf, schema: Schema, places: RowPlaces) -> Iterator[Rule]:
    if leaf.dtype.kind == "f":
        yield Rule("not-finite", f"{leaf.name} is not finite", _of_episodes(places, _not_finite))
    outside = _outside(leaf, schema.frame_stack is not None)
    if outside is not None:
        what = f"{leaf.name} lies outside the environment's observation space"
        yield Rule("observation-bounds", what, _of_episodes(places, outside))


def _acted(leaf: Leaf, places: RowPlaces) -> Iterator[Rule]:
    if leaf.dtype.kind == "f":
        yield Rule("not-finite", f"{leaf.name} is not finite", _steps(places, _not_finite))
    outside = _outside(leaf, frame=False)
    if outside is not None:
        what = f"{leaf.name} lies outside the environment's action space"
        yield Rule("action-bounds", what, _steps(places, outside))


def _flags(places: RowPlaces, name: str) -> Callable[[Block], Mask]:
    terminates = places.records["ending"] == Ending.TERMINATED
    ends = places.closings[terminates if name == "terminated" else ~terminates] - 1

    def differ(block: Block) -> Mask:
        expected = np.zeros(len(block.rows), bool)
        low, high = np.searchsorted(ends, (block.first, block.end))
        expected[ends[low:high] - block.first] = True
        stored = block.rows.view(np.uint8) != 0
        return np.asarray((stored != expected) & places.counting(block.first, block.end))

    return differ


_KIND_OF_PLACE = np.array([0, RowKind.STEP, RowKind.STEP, RowKind.CLOSING, 0], "u1")


def _kinds(places: RowPlaces) -> Iterator[Rule]:
    def wrong(block: Block) -> Mask:
        expected = _KIND_OF_PLACE[_place(places, block)]
        return np.asarray((block.rows != expected) & places.counting(block.first, block.end))

    def shown(block: Block) -> Mask:
        void = _place(places, block) == Place.VOID
        return np.asarray((block.rows != RowKind.NEVER_WRITTEN) & void)

    yield Rule("row-kinds", "kinds of rows are not steps and then one closing row", wrong)
    yield Rule("void-rows", "rows of episodes that were taken out count as written", shown)


def _behaviour_kinds(places: RowPlaces) -> Iterator[Rule]:
    last = max(BehaviourKind)
    bad = _steps(places, lambda rows: rows > last)
    yield Rule("behaviour-kind", f"behaviour_kind is above {int(last)}", bad)


def _rewards(places: RowPlaces) -> Iterator[Rule]:
    yield Rule("not-finite", "reward is not finite", _steps(places, _not_finite))
    yield Rule("return", "the log's return is not the sum of the rewards", _Returns(places))


class _Returns:
    """Sums each episode's rewards in the writer's order, so that equal means equal in every bit."""

    def __init__(self, places: RowPlaces) -> None:
        self._places = places
        self._carried = 0.0
        """Sum of the episode that the last block broke off in."""

    def __call__(self, block: Block) -> Mask:
        bad = np.zeros(len(block.rows), bool)
        places = self._places
        for episode in places.overlapping(block.first, block.end):
            start, closing = int(places.starts[episode]), int(places.closings[episode])
            part = block.rows[max(0, start - block.first) : max(0, closing - block.first)]
            if not len(part):
                continue
            if start < block.first:
                part = np.concatenate([[self._carried], part])
            self._carried = float(np.cumsum(part)[-1])
            if closing <= block.end and self._carried != places.records["return"][episode]:
                bad[closing - 1 - block.first] = True
        return bad


def _policy_updates(places: RowPlaces) -> Iterator[Rule]:
    def differ(block: Block) -> Mask:
        bad = np.zeros(len(block.rows), bool)
        ends = (places.starts, "first_policy_update"), (places.closings - 1, "last_policy_update")
        for rows, name in ends:
            low, high = np.searchsorted(rows, (block.first, block.end))
            at = rows[low:high] - block.first
            bad[at] |= block.rows[at] != places.records[name][low:high]
        return bad

    yield Rule("policy-update", "policy_update is not what the log says", differ)


_OWN: dict[str, Callable[[RowPlaces], Iterator[Rule]]] = {
    "kind": _kinds,
    "behaviour_kind": _behaviour_kinds,
    "reward": _rewards,
    "policy_update": _policy_updates,
}
