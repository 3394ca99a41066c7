"""What a store holds, as plain data: read from logs and maps, without torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from storage.commit_log import RECORD
from storage.layout import FORMAT_VERSION, BehaviourKind, Ending, RowKind
from storage.overlay import is_overlay_name
from storage.problems import damaged_segments

if TYPE_CHECKING:
    from storage import Store
    from storage.overlay import Overlay
    from storage.segment import SegmentInfo

__all__ = [
    "OverlaySummary",
    "PriorityStep",
    "SegmentSummary",
    "Spread",
    "StoreSummary",
    "disk_use",
    "summarize",
]


@dataclass(frozen=True, slots=True)
class Spread:
    """How a number is spread over episodes."""

    mean: float
    deviation: float
    smallest: float
    median: float
    largest: float
    last_20_mean: float

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Spread | None:
        """The spread of `values` in order of time; None for none."""
        if len(values) == 0:
            return None
        numbers = values.astype(np.float64)
        return cls(
            float(numbers.mean()),
            float(numbers.std()),
            float(numbers.min()),
            float(np.median(numbers)),
            float(numbers.max()),
            float(numbers[-20:].mean()),
        )


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """One segment: who wrote it, when (UTC), and how much."""

    id: int
    run: str
    lane: int
    rows: int
    steps: int
    episodes: int
    sealed: bool
    begun: str | None
    last_episode: str | None


@dataclass(frozen=True, slots=True)
class PriorityStep:
    """A step that prioritized replay would draw often."""

    segment: int
    row: int
    episode: int
    step: int
    priority: float
    share: float
    drawn: int


@dataclass(frozen=True, slots=True)
class OverlaySummary:
    """One run's caches over all steps of the store, those outside the run's window included.

    The n_far/N of metrics and curves counts the window only.
    """

    name: str
    steps: int
    far_steps: int
    far_fraction: float | None
    drawn: int
    top_priorities: list[PriorityStep]


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """Everything `sharpwave inspect` tells; `to_json` gives the same as plain types."""

    path: str
    uuid: str
    format_version: int
    environment: str
    behaviour_family: str
    behaviours: dict[str, int]
    """Steps by the kind of distribution that drew their action."""
    columns: list[dict[str, Any]]
    steps: int
    episodes: int
    rows: int
    returns: Spread | None
    lengths: Spread | None
    endings: dict[str, int]
    segments: list[SegmentSummary]
    overlays: list[OverlaySummary]
    disk_bytes: dict[str, int]
    problems: list[str]
    """What the store lacks; segments that cannot be read are left out of all that reads rows."""

    def to_json(self) -> dict[str, Any]:
        """Dictionaries, lists, numbers and text only."""
        return asdict(self)


def summarize(store: Store, *, top: int = 10) -> StoreSummary:
    """Reads `store`'s logs and overlays; at most `top` steps by priority an overlay."""
    records = _by_time([store.records(segment.id) for segment in store.segments])
    return StoreSummary(
        path=str(store.path),
        uuid=str(store.uuid),
        format_version=FORMAT_VERSION,
        environment=store.env_spec.id,
        behaviour_family=store.schema.behaviour_family,
        behaviours=_behaviours(store),
        columns=[
            {"name": c.name, "dtype": np.dtype(c.dtype).name, "shape": list(c.shape)}
            for c in store.schema.columns
        ],
        steps=store.n_steps,
        episodes=store.n_episodes,
        rows=store.n_rows,
        returns=Spread.of(records["return"]),
        lengths=Spread.of(records["length"]),
        endings={e.name.lower(): int((records["ending"] == e).sum()) for e in Ending},
        segments=[_segment(store, info) for info in store.segments],
        overlays=[_overlay(store, name, top) for name in _overlay_names(store.path)],
        disk_bytes=disk_use(store.path),
        problems=store.problems(),
    )


def disk_use(path: Path) -> dict[str, int]:
    """Bytes that the store's parts occupy on the disk (allocated, not apparent)."""
    parts = {"steps": 0, "overlays": 0, "logs": 0, "episode tables": 0, "other": 0}
    names = {"steps.zarr": "steps", "overlays": "overlays", "log": "logs"}
    names["episodes"] = "episode tables"
    for file in path.rglob("*"):
        if file.is_file():
            part = names.get(file.relative_to(path).parts[0], "other")
            parts[part] += file.stat().st_blocks * 512
    return parts | {"total": sum(parts.values())}


def _behaviours(store: Store) -> dict[str, int]:
    counts = np.zeros(len(BehaviourKind), np.int64)
    for info in _readable(store):
        segment = store.segment(info.id)
        drawn = segment.array("behaviour_kind")[segment.array("kind") == RowKind.STEP]
        counts += np.bincount(drawn, minlength=len(counts))
    return {kind.name.lower().replace("_", " "): int(counts[kind]) for kind in BehaviourKind}


def _by_time(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    records = np.concatenate([np.empty(0, RECORD), *parts])
    return records[np.argsort(records["end_time"], kind="stable")]


def _segment(store: Store, info: SegmentInfo) -> SegmentSummary:
    records = store.records(info.id)
    return SegmentSummary(
        id=info.id,
        run=info.run,
        lane=info.lane,
        rows=info.rows,
        steps=info.steps,
        episodes=info.episodes,
        sealed=info.sealed,
        begun=_time(records["begin_time"][0]) if len(records) else None,
        last_episode=_time(records["end_time"][-1]) if len(records) else None,
    )


def _time(nanoseconds: int) -> str:
    moment = datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC)
    return moment.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")


def _readable(store: Store) -> list[SegmentInfo]:
    damaged = damaged_segments(store)
    return [info for info in store.segments if info.id not in damaged]


def _overlay_names(path: Path) -> list[str]:
    files = (path / "overlays").glob("*.zarr/zarr.json")
    names = [file.parent.name.removesuffix(".zarr") for file in files]
    return sorted(name for name in names if is_overlay_name(name))


def _overlay(store: Store, name: str, top: int) -> OverlaySummary:
    overlay = store.overlay(name)
    parts = [_OverlayPart.read(store, overlay, info) for info in _readable(store)]
    steps = sum(part.steps for part in parts)
    far = sum(part.far for part in parts)
    return OverlaySummary(
        name=name,
        steps=steps,
        far_steps=far,
        far_fraction=far / steps if steps else None,
        drawn=sum(part.drawn for part in parts),
        top_priorities=_top_priorities(store, parts, top),
    )


@dataclass(frozen=True, slots=True)
class _OverlayPart:
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
    def read(cls, store: Store, overlay: Overlay, info: SegmentInfo) -> _OverlayPart:
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


def _top_priorities(store: Store, parts: list[_OverlayPart], top: int) -> list[PriorityStep]:
    if not parts:
        return []
    priority = np.concatenate([part.priority for part in parts])
    total = float(priority.sum(dtype=np.float64))
    if total <= 0:
        return []
    segment = np.repeat([part.segment for part in parts], [part.steps for part in parts])
    row = np.concatenate([part.rows for part in parts])
    draws = np.concatenate([part.draws for part in parts])
    steps = []
    for i in np.argsort(-priority, kind="stable")[:top]:
        episode, step = _place(store, int(segment[i]), int(row[i]))
        steps.append(
            PriorityStep(
                segment=int(segment[i]),
                row=int(row[i]),
                episode=episode,
                step=step,
                priority=float(priority[i]),
                share=float(priority[i]) / total,
                drawn=int(draws[i]),
            )
        )
    return steps


def _place(store: Store, segment: int, row: int) -> tuple[int, int]:
    """The ordinal of the row's episode within the segment, and the step within the episode."""
    records = store.records(segment)
    at = int(np.searchsorted(records["start"], row, side="right")) - 1
    return int(records["ordinal"][at]), row - int(records["start"][at])
