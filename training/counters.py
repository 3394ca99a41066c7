"""How far a run is."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Counters"]

_ROUNDING = 1.0 + 2.0**-50
"""So that 0.29 updates a step make 29 in 100 steps, although 0.29 * 100 is a little less."""


@dataclass(slots=True)
class Counters:
    """How far a run is; every number is part of its checkpoints."""

    environment_steps: int = 0
    """Steps taken in environments, warm-up included; from a fixed store, which takes none, the
    updates that the budget counts instead."""
    updates: int = 0
    """Gradient steps."""
    wall_time: float = 0.0
    """Seconds spent training, over all sittings."""
    origin_steps: int = -1
    """Environment steps from which updates are counted; -1 while warming up."""
    origin_updates: int = 0
    """Updates at that moment."""
    ratio: float = 1.0
    """Updates for each environment step since then."""

    def due(self) -> int:
        """Updates owed by now; the debt of a changed ratio or of the warm-up is never owed."""
        if self.origin_steps < 0:
            return 0
        steps = self.environment_steps - self.origin_steps
        owed = math.floor(steps * self.ratio * _ROUNDING)
        return self.origin_updates + owed - self.updates

    def start(self, ratio: float) -> None:
        """Counts updates from here on with ``ratio`` to the environment steps."""
        self.origin_steps = self.environment_steps
        self.origin_updates = self.updates
        self.ratio = ratio
