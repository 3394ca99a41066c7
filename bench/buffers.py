"""Replay beside the installed peers' buffers: drawing, new priorities, and appending a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np

from bench.bare_gather import BareGather
from bench.cheetah import EPISODE
from bench.cycles import Cycle, cycles
from bench.effort import Effort
from bench.figure import Cell, Figure
from bench.own_buffer import FIELDS, OwnBuffer, own_buffer
from bench.peer_buffers import PRIORITIZED, UNIFORM, Buffer, Maker, installed
from bench.sampling import row_bytes
from bench.timing import alternate, microseconds
from bench.transitions import Transitions

__all__ = ["compare", "measure"]

Part = Literal["draw", "update", "both"]
"""What of a `Cycle` a cell shows."""

EXPONENTS: Final = (18, 20)
"""Steps in a full buffer, as powers of two."""
BATCHES: Final = (32, 256, 1024)
_TARGETS: Final = {(20, 256): 0.4}
"""At most so many times the fastest peer's time, by exponent and batch: 2.5 times as fast."""
_PARTS: Final[tuple[Part, ...]] = ("draw", "update", "both")
_BARE = "bare gather of packed rows"
_SCHEMES: Final[dict[str, Mapping[str, Maker]]] = {"per": PRIORITIZED, "uniform": UNIFORM}
_TITLES: Final = {"per": "prioritized", "uniform": "uniform"}


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """All schemes and sizes; one table a scheme and size."""
    return [
        figure
        for exponent in EXPONENTS
        for scheme in _SCHEMES
        for figure in compare(folder / f"{scheme}-{exponent}", scheme, exponent, BATCHES, effort)
    ]


def compare(
    path: Path, scheme: str, exponent: int, batches: Sequence[int], effort: Effort
) -> list[Figure]:
    """Ours and the peers', all full of 2^exponent steps, in this process and in turn."""
    table = f"{_TITLES[scheme]} replay of 2^{exponent} steps"
    transitions = Transitions.random(2**exponent)
    peers, left_out = installed(_SCHEMES[scheme], transitions)
    with own_buffer(path, len(transitions), scheme) as ours:
        width = row_bytes(ours.view)
        details = {"fields": FIELDS, "row_bytes": width, "left_out": left_out}
        comparison = _Comparison(table, ours, peers, details)
        bare = BareGather(len(transitions), width)
        parts: Sequence[Part] = _PARTS if scheme == "per" else ("draw",)
        figures = []
        for batch in batches:
            figures += comparison.drawing(batch, bare, parts, effort.repeats(100))
        figures += comparison.appending(effort.repeats(60))
    if scheme == "per" and peers:
        figures += comparison.fastest(exponent)
    return figures


class _Comparison:
    """One table: our buffer beside its peers."""

    def __init__(
        self,
        table: str,
        ours: OwnBuffer,
        peers: Mapping[str, Buffer],
        details: Mapping[str, object],
    ) -> None:
        self._table = table
        self._ours = ours
        self._peers = peers
        self._details = details
        self._cycles: dict[int, dict[str, list[Cycle]]] = {}

    def drawing(
        self, batch: int, bare: Buffer, parts: Sequence[Part], repeats: int
    ) -> list[Figure]:
        """Cells of these parts of drawing and updating."""
        buffers = {"ours": self._ours, **self._peers, _BARE: bare}
        works = {name: cycles(buffer, batch) for name, buffer in buffers.items()}
        samples = alternate(works, repeats)
        self._cycles[batch] = samples
        return [
            self._cell(f"{part} {batch}", name, *_times(samples, ("ours", name), part))
            for part in parts
            for name in (*self._peers, *([_BARE] if part == "draw" else []))
        ]

    def appending(self, repeats: int) -> list[Figure]:
        """Cells of one more step; an episode of ours counts as a whole."""
        works = {"ours": microseconds(self._ours.append, calls=EPISODE)}
        works |= {name: microseconds(peer.append) for name, peer in self._peers.items()}
        samples = alternate(works, repeats)
        return [self._cell("append", name, samples["ours"], samples[name]) for name in self._peers]

    def fastest(self, exponent: int) -> list[Figure]:
        """For each batch a figure of its own: draw and update beside the fastest peer's."""
        figures = []
        for batch, samples in self._cycles.items():
            both = dict(zip(samples, _times(samples, list(samples), "both"), strict=True))
            name = min(self._peers, key=lambda peer: float(np.median(both[peer])))
            figures.append(
                Figure.of(
                    f"draw and update {batch} of 2^{exponent} by priority, beside the fastest peer",
                    "µs",
                    both["ours"],
                    both[name],
                    name,
                    target=_TARGETS.get((exponent, batch)),
                    details=self._details,
                )
            )
        return figures

    def _cell(
        self, column: str, name: str, values: Sequence[float], limits: Sequence[float]
    ) -> Figure:
        return Figure.of(
            f"{self._table}: {column}, beside {name}",
            "µs",
            values,
            limits,
            name,
            place=Cell(self._table, column),
            details=self._details,
        )


def _times(
    samples: Mapping[str, Sequence[Cycle]], names: Sequence[str], part: Part
) -> list[list[float]]:
    return [[getattr(cycle, part) for cycle in samples[name]] for name in names]
