"""The limit of every draw: copying packed rows from known random places."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.transitions import Floats32

__all__ = ["BareGather"]

_DRAWS = 500


class BareGather:
    """Rows of `width` bytes, all of a step in one piece, and one np.take a batch.

    `packed`, uint8 [rows, width], are rows that are there already; they are not copied.
    """

    def __init__(self, rows: int, width: int, packed: npt.NDArray[np.uint8] | None = None) -> None:
        self._packed = np.ones((rows, width), np.uint8) if packed is None else packed
        self._turns: dict[int, tuple[Iterator[npt.NDArray[np.intp]], npt.NDArray[np.uint8]]] = {}

    def draw(self, size: int) -> npt.NDArray[np.uint8]:
        """The next batch; batches of one size share their buffer."""
        if size not in self._turns:
            rows, width = self._packed.shape
            places = np.random.default_rng(0).integers(0, rows, (_DRAWS, size))
            self._turns[size] = itertools.cycle(list(places)), np.empty((size, width), np.uint8)
        turn, out = self._turns[size]
        return np.take(self._packed, next(turn), axis=0, out=out, mode="clip")

    def update(self, drawn: Any, errors: Floats32) -> None:
        """Has no priorities."""

    def append(self) -> None:
        """Keeps nothing new."""
