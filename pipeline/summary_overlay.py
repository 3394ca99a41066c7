"""What an overlay holds, and which of its steps prioritized replay draws most."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pipeline.stored_run import StoredRun
from pipeline.summary_draws import DrawRule, draw_rule
from storage.layout import RowKind
from storage.overlay import is_overlay_name
from storage.problems import damaged_segments

if TYPE_CHECKING:
    from storage import Store
    from storage.overlay import Overlay
    from storage.segment import SegmentInfo

__all__ = [
    "OverlaySummary",
    "PriorityStep",
    "PrioritySummary",
    "readable_segments",
    "summarize_overlays",
]


@dataclass(frozen=True, slots=True)
class PriorityStep:
    """A step that prioritized replay draws often."""

    segment: int
    row: int
    episode: int
    """Its number in the whole store, as `store.episode` takes it."""
    step: int
    priority: float
    """As stored: alpha not applied, unless the run's settings apply it before."""
    probability: float
    """Of the next draw of one step."""
    drawn: int


@dataclass(frozen=True, slots=True)
class PrioritySummary:
    """The priorities of the steps that may be drawn, and the rule that draws by them."""

    steps: int
    """Steps that P is over: with a priority above 0 and, where it is known, in the window."""
    rule: DrawRule
    top: list[PriorityStep]
    """Those of the largest priority, in that order."""


@dataclass(frozen=True, slots=True)
class OverlaySummary:
    """One run's caches over all steps of the store, those outside the run's window included.

    The n_far/N of metrics and curves counts the window only.
    """

    name: str
    folder: str | None
    """The run's folder that holds it; None where the store does."""
    steps: int
    far_steps: int
    far_fraction: float | None
    drawn: int
    priorities: PrioritySummary | None
    """None where no step has a priority."""


def summarize_overlays(
    store: Store, learner: StoredRun | None, *, top: int, alpha: float | None
) -> list[OverlaySummary]:
    """The overlays inside the store, then those of a run that learns from it, in its own folder.

    At most `top` steps by priority are listed for each. They are drawn by the settings of the run
    that the store belongs to, or of `learner`, or by the exponent `alpha` where it is given.
    """
    owner = StoredRun.at(store.path)
    found = [
        _overlay(store, name, None, draw_rule(owner, name, alpha), top)
        for name in _names(store.path)
    ]
    if learner is not None:
        found += [
            _overlay(store, name, learner.folder, draw_rule(learner, name, alpha), top)
            for name in _names(learner.folder)
        ]
    return found


def readable_segments(store: Store) -> list[SegmentInfo]:
    """Segments whose columns are whole."""
    damaged = damaged_segments(store)
    return [info for info in store.segments if info.id not in damaged]


def _names(path: Path) -> list[str]:
    files = (path / "overlays").glob("*.zarr/zarr.json")
    names = [file.parent.name.removesuffix(".zarr") for file in files]
    return sorted(name for name in names if is_overlay_name(name))


def _overlay(
    store: Store, name: str, root: Path | None, rule: DrawRule, top: int
) -> OverlaySummary:
    overlay = store.overlay(name, root=root)
    parts = [_Part.read(store, overlay, info) for info in readable_segments(store)]
    steps, far = sum(part.steps for part in parts), sum(part.far for part in parts)
    return OverlaySummary(
        name=name,
        folder=None if root is None else str(root),
        steps=steps,
        far_steps=far,
        far_fraction=far / steps if steps else None,
        drawn=sum(part.drawn for part in parts),
        priorities=_priorities(store, parts, rule, top),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """An overlay's columns over one segment's steps; `rows` are the rows of these steps."""

    segment: int
    rows: npt.NDArray[np.int64]
    priority: npt.NDArray[np.float32]
    draws: npt.NDArray[np.uint32]
    far: int

    @property
    def steps(self) -> int:
        return len(self.rows)

    @property
    def drawn(self) -> int:
        return int(self.draws.sum())

    @classmethod
    def read(cls, store: Store, overlay: Overlay, info: SegmentInfo) -> _Part:
        """Copies what the summary needs; rows that the overlay has not reached count as zero."""
        kind = store.segment(info.id).array("kind")
        rows = np.flatnonzero(kind == RowKind.STEP)
        columns = overlay.segment(info.id, info.rows)
        return cls(
            info.id,
            rows,
            np.asarray(columns.array("priority"))[rows],
            np.asarray(columns.array("draw_count"))[rows],
            int(np.count_nonzero(np.asarray(columns.array("far"))[rows])),
        )


def _priorities(
    store: Store, parts: list[_Part], rule: DrawRule, top: int
) -> PrioritySummary | None:
    if not any((part.priority > 0).any() for part in parts):
        return None
    priority = np.concatenate([part.priority for part in parts])
    probability = rule.probabilities(priority, np.concatenate(rule.drawable(store, parts)))
    segment = np.repeat([part.segment for part in parts], [part.steps for part in parts])
    row = np.concatenate([part.rows for part in parts])
    draws = np.concatenate([part.draws for part in parts])
    before = _episodes_before(store)
    listed = np.flatnonzero(probability > 0)
    order = listed[np.argsort(-priority[listed], kind="stable")[:top]]
    steps = [
        PriorityStep(
            int(segment[i]),
            int(row[i]),
            *_place(store, before, int(segment[i]), int(row[i])),
            float(priority[i]),
            float(probability[i]),
            int(draws[i]),
        )
        for i in order
    ]
    return PrioritySummary(len(listed), rule, steps)


def _episodes_before(store: Store) -> dict[int, int]:
    """Episodes of all segments before each one, damaged ones included."""
    counts = [info.episodes for info in store.segments]
    firsts = [sum(counts[:i]) for i in range(len(counts))]
    return {info.id: first for info, first in zip(store.segments, firsts, strict=True)}


def _place(store: Store, before: dict[int, int], segment: int, row: int) -> tuple[int, int]:
    """The number of the row's episode in the whole store, and the step within the episode."""
    records = store.records(segment)
    at = int(np.searchsorted(records["start"], row, side="right")) - 1
    return before[segment] + at, row - int(records["start"][at])
