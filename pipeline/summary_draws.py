"""How stored priorities become probabilities: by a run's settings, as far as they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.stored_run import StoredRun
from storage.replay.admission import new_episodes, newest
from storage.replay.schemes.priority_settings import PrioritySettings

if TYPE_CHECKING:
    from storage import Store

__all__ = ["DrawRule", "SegmentPriorities", "draw_rule"]

_Mask = npt.NDArray[np.bool_]


class SegmentPriorities(Protocol):
    """The steps of one segment: their rows, in order, and their stored priorities."""

    @property
    def segment(self) -> int:
        """The segment's id."""

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Rows of its steps."""

    @property
    def priority(self) -> npt.NDArray[np.float32]:
        """Their priorities."""


@dataclass(frozen=True, slots=True)
class DrawRule:
    """P(i) = p_i^exponent / Σ p_k^exponent, the sum over the steps that may be drawn."""

    exponent: float
    source: str
    """Where the exponent is from, for people."""
    window: int | None
    """Steps of the newest whole episodes that may be drawn; None where that is not known."""

    def probabilities(
        self, priority: npt.NDArray[np.float32], drawable: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """P of each step; 0 where it has no priority above 0 or may not be drawn.

        A stored priority of 0 (0.0: none yet, -0.0: never drawn) has P = 0 whatever the exponent.
        """
        weights = np.zeros(len(priority), np.float64)
        chosen = drawable & np.isfinite(priority) & (priority > 0)
        weights[chosen] = priority[chosen].astype(np.float64) ** self.exponent
        return weights / max(float(weights.sum()), np.finfo(np.float64).tiny)

    def drawable(self, store: Store, parts: Sequence[SegmentPriorities]) -> list[_Mask]:
        """Whether each step of each of the store's segments lies in the window."""
        if self.window is None:
            return [np.ones(len(part.rows), np.bool_) for part in parts]
        episodes = new_episodes(store, [part.segment for part in parts], {})
        entered = np.zeros(len(episodes), np.bool_)
        for part in parts:
            entered |= _entered(episodes, part)
        kept = newest(episodes[entered], self.window)
        return [_inside(kept[kept[:, 0] == part.segment], part.rows) for part in parts]


def draw_rule(run: StoredRun | None, overlay: str, alpha: float | None) -> DrawRule:
    """The rule of the run that `overlay` belongs to; `alpha` given wins over its exponent."""
    if run is not None and not run.draws_from(overlay):
        run = None
    window = None if run is None else run.window
    if alpha is not None:
        return DrawRule(alpha, "as given by --alpha", window)
    if run is None:
        why = "since no prioritized run's config.yaml is beside it; --alpha gives another"
        return DrawRule(PrioritySettings().alpha, f"the default {why}", None)
    held = run.priorities.exponent == "priorities"
    exponent = 1.0 if held else run.priorities.alpha
    already = f", whose priorities hold alpha {run.priorities.alpha:g} already" if held else ""
    return DrawRule(exponent, f"by {run.name}/config.yaml{already}", window)


def _entered(episodes: npt.NDArray[np.int64], part: SegmentPriorities) -> _Mask:
    """Which episodes (segment, ordinal, start, length) have a step in `part` with a priority.

    The others never came to replay, as the one that a run's end cut.
    """
    given = part.rows[part.priority.view(np.int32) != 0]
    first, length = episodes[:, 2], episodes[:, 3]
    found = np.searchsorted(given, first + length) > np.searchsorted(given, first)
    entered: _Mask = found & (episodes[:, 0] == part.segment)
    return entered


def _inside(episodes: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> _Mask:
    """Which rows of one segment are steps of its `episodes` (segment, ordinal, start, length)."""
    if not len(episodes):
        return np.zeros(len(rows), np.bool_)
    first = np.sort(episodes[:, 2])
    length = episodes[np.argsort(episodes[:, 2]), 3]
    at = np.searchsorted(first, rows, side="right") - 1
    inside: _Mask = (at >= 0) & (rows < first[at] + length[at])
    return inside
