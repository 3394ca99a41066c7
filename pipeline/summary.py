"""What a store holds, as plain data: read from logs and maps, without torch."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pipeline.episode_order import in_order_of_end, whole_returns
from pipeline.summary_overlay import OverlaySummary, readable_segments, summarize_overlays
from storage.layout import FORMAT_VERSION, BehaviourKind, Ending, RowKind
from storage.retention import dropped_records

if TYPE_CHECKING:
    from pipeline.stored_run import StoredRun
    from storage import Store
    from storage.segment import SegmentInfo

__all__ = ["DroppedSummary", "SegmentSummary", "Spread", "StoreSummary", "disk_use", "summarize"]


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
class DroppedSummary:
    """What retention dropped: the episodes are known, their steps are gone."""

    segments: int
    episodes: int
    steps: int


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
    dropped: DroppedSummary
    returns: Spread | None
    """Of the episodes that their environment ended, over all ever, of dropped segments, too."""
    lengths: Spread | None
    """Of all episodes ever; so are `endings`."""
    endings: dict[str, int]
    segments: list[SegmentSummary]
    overlays: list[OverlaySummary]
    disk_bytes: dict[str, int]
    problems: list[str]
    """What the store lacks; segments that cannot be read are left out of all that reads rows."""

    def to_json(self) -> dict[str, Any]:
        """Dictionaries, lists, numbers and text only."""
        return asdict(self)


def summarize(
    store: Store, learner: StoredRun | None = None, *, top: int = 10, alpha: float | None = None
) -> StoreSummary:
    """Reads `store`'s logs and overlays; see `summarize_overlays` for the other arguments."""
    dropped = [records for _, _, records in dropped_records(store.paths)]
    records = in_order_of_end(store)
    returns = whole_returns(records)
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
        dropped=DroppedSummary(
            segments=len(dropped),
            episodes=sum(map(len, dropped)),
            steps=sum(int(each["length"].sum()) for each in dropped),
        ),
        returns=Spread.of(returns[~np.isnan(returns)]),
        lengths=Spread.of(records["length"]),
        endings={e.name.lower(): int((records["ending"] == e).sum()) for e in Ending},
        segments=[_segment(store, info) for info in store.segments],
        overlays=summarize_overlays(store, learner, top=top, alpha=alpha),
        disk_bytes=disk_use(store.path),
        problems=store.problems(),
    )


def disk_use(path: Path) -> dict[str, int]:
    """Bytes that the store's parts occupy on the disk (allocated, not apparent).

    Others may write meanwhile: what goes while it is looked at counts as nothing.
    """
    parts = {"steps": 0, "overlays": 0, "logs": 0, "episode tables": 0, "other": 0}
    names = {"steps.zarr": "steps", "overlays": "overlays", "log": "logs"}
    names["episodes"] = "episode tables"
    for folder, _, files in os.walk(path):  # which does not mind that folders go
        top = Path(folder).relative_to(path).parts[:1]
        for file in files:
            with suppress(FileNotFoundError):
                size = Path(folder, file).lstat().st_blocks * 512
                parts[names.get(top[0] if top else file, "other")] += size
    return parts | {"total": sum(parts.values())}


def _behaviours(store: Store) -> dict[str, int]:
    counts = np.zeros(len(BehaviourKind), np.int64)
    for info in readable_segments(store):
        segment = store.segment(info.id)
        drawn = segment.array("behaviour_kind")[segment.array("kind") == RowKind.STEP]
        counts += np.bincount(drawn, minlength=len(counts))
    return {kind.name.lower().replace("_", " "): int(counts[kind]) for kind in BehaviourKind}


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
