"""How thoroughly to measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["FULL", "QUICK", "Effort"]


@dataclass(frozen=True, slots=True)
class Effort:
    """What a run of the benchmarks takes on."""

    share: float
    """Of the repeats of a whole run."""
    curves: bool
    """Whether cost curves are measured."""
    compiled_loop: bool
    """Whether loops wait for the compiled engine."""

    def repeats(self, whole: int, *, least: int = 3) -> int:
        """How many repeats to take of what a whole run repeats `whole` times."""
        return max(least, round(whole * self.share))


FULL: Final = Effort(1.0, curves=True, compiled_loop=True)
QUICK: Final = Effort(0.25, curves=False, compiled_loop=False)
