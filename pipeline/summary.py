"""What a store holds, as plain data: read from logs and maps, without torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import storage
from storage import Ending

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
    """One run's caches over the store's steps."""

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

    def to_json(self) -> dict[str, Any]:
        """Dictionaries, lists, numbers and text only."""
        return asdict(self)


def summarize(store: storage.Store, *, top: int = 10) -> StoreSummary:
    """Reads `store`'s logs and overlays; at most `top` steps by priority an overlay."""
    records = _by_time([store.records(segment.id) for segment in store.segments])
    return StoreSummary(
        path=str(store.path),
        uuid=str(store.uuid),
        format_version=storage.FORMAT_VERSION,
        environment=store.env_spec.id,
        behaviour_family=store.schema.behaviour_family,
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


def _by_time(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    records = np.concatenate(parts) if parts else np.empty(0, storage.RECORD_DTYPE)
    return records[np.argsort(records["end_time"], kind="stable")]


def _overlay_names(path: Path) -> list[str]:
    return sorted(p.name.removesuffix(".zarr") for p in (path / "overlays").glob("*.zarr"))
