"""What a behaviour row may hold, which depends on its behaviour kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from storage.layout import BehaviourKind
from storage.schema import Schema
from storage.spaces import Leaf
from storage.verification.blocks import Block
from storage.verification.row_places import Place, RowPlaces
from storage.verification.rules import Rule

__all__ = ["behaviour_rules"]

_GAUSSIAN = (BehaviourKind.GAUSSIAN, BehaviourKind.NOMINAL_GAUSSIAN)
_PARAMETRIC = (*_GAUSSIAN, BehaviourKind.CATEGORICAL)
_TOLERANCE = 1e-3
"""How far from 1 probabilities in float32 may sum."""

Rows = np.ndarray[Any, Any]


def behaviour_rules(schema: Schema, places: RowPlaces, kinds: Rows) -> Iterator[Rule]:
    """The rules of the behaviour column; ``kinds`` is the behaviour_kind of rows from 0."""

    def among(
        wanted: tuple[BehaviourKind, ...], bad: Callable[[Rows], Any]
    ) -> Callable[[Block], Rows]:
        def find(block: Block) -> Rows:
            kind = kinds[block.first : block.end]
            place = places.place[block.first : block.first + len(kind)]
            asked = np.isin(kind, wanted) & ((place == Place.STEP) | (place == Place.LAST_STEP))
            mask = np.zeros(len(block.rows), bool)
            rows = np.flatnonzero(asked)
            mask[rows] = bad(block.rows[rows])
            return mask

        return find

    unknown = among((BehaviourKind.UNKNOWN,), lambda rows: ~np.isnan(rows).all(axis=1))
    yield Rule("behaviour", "behaviour has parameters, its kind is unknown", unknown)
    numbers = among(_PARAMETRIC, lambda rows: ~np.isfinite(rows).all(axis=1))
    yield Rule("behaviour", "behaviour is not finite, its kind has parameters", numbers)
    if schema.behaviour_family == "gaussian":
        half = schema.behaviour_size // 2
        spread = among(_GAUSSIAN, lambda rows: (rows[:, half:] <= 0).any(axis=1))
        yield Rule("behaviour", "a standard deviation is not above 0", spread)
    if schema.behaviour_family == "categorical":
        starts = _group_starts(schema.action)
        wrong = among((BehaviourKind.CATEGORICAL,), lambda rows: _no_probabilities(rows, starts))
        yield Rule("probabilities", "probabilities are not in [0, 1] or do not sum to 1", wrong)


def _group_starts(leaves: tuple[Leaf, ...]) -> Rows:
    """Where the probabilities of each single choice begin in a row."""
    from gymnasium import spaces

    sizes: list[int] = []
    for leaf in leaves:
        if isinstance(leaf.space, spaces.Discrete):
            sizes.append(int(leaf.space.n))
        elif isinstance(leaf.space, spaces.MultiDiscrete):
            sizes += [int(count) for count in leaf.space.nvec.reshape(-1)]
        else:
            sizes += [2] * leaf.size
    return np.cumsum([0, *sizes[:-1]])


def _no_probabilities(rows: Rows, starts: Rows) -> Rows:
    if not len(rows):
        return np.zeros(0, bool)
    sums = np.add.reduceat(rows.astype(np.float64), starts, axis=1)
    apart = (np.abs(sums - 1) > _TOLERANCE).any(axis=1)
    outside = ((rows < 0) | (rows > 1 + _TOLERANCE)).any(axis=1)
    bad: Rows = apart | outside
    return bad
