"""A store: the folder that holds an agent's experience, opened for reading or writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from storage.columns import Columns
from storage.commit_log import CommitLog
from storage.description import read_description
from storage.episode import Episode, read_episode
from storage.episode_table import EpisodeRecord, episode_table
from storage.errors import (
    ConfigError,
    ReadOnlyStoreError,
)
from storage.layout import StorePaths
from storage.position import StorePosition
from storage.segment import MappedSegment, SegmentInfo, header_of
from storage.store_logs import StoreLogs

if TYPE_CHECKING:
    import dask.array
    import pyarrow as pa
    import xarray as xr

    from storage.overlay import Overlay
    from storage.replay import PrioritySettings, ReplayView, SequenceSettings
    from storage.syncing import Durability
    from storage.writer import Writer
    from storage.writer_settings import Nonfinite

__all__ = ["Mode", "Store"]

Mode = Literal["r", "r+"]
_MOST_MAPS = 16_384
"""Memory maps that a store holds on to: a quarter of what Linux lets a process have."""


class Store:
    """An opened store. What it shows is fixed until ``refresh``.

    But for a run that is rewound meanwhile, whose later rows are taken anew under its reader.
    """

    def __init__(self, root: Path, mode: Mode, attributes: Mapping[str, Any]) -> None:
        self.path = root
        self.paths = StorePaths(root)
        self.mode: Mode = mode
        self.uuid: str = attributes["store_uuid"]
        self.env_spec, self.schema = read_description(attributes, self.paths.steps / "zarr.json")
        self.columns = Columns(self.schema, lambda: self.segments, self.segment)
        """Columns by name: ``store.columns["reward"][a:b]``, rows of all segments in order."""
        self._logs = StoreLogs(self.paths, self.schema, self.uuid)
        self._mapped: dict[int, MappedSegment] = {}
        self.refresh()

    def refresh(self) -> bool:
        """Take in what was committed since; True when there was anything."""
        changed = self._logs.refresh()
        for segment, mapped in list(self._mapped.items()):
            if segment not in self._logs or self._logs.get(segment).inode != mapped.inode:
                del self._mapped[segment]
            elif mapped.rows != self._logs.get(segment).rows:
                mapped.refresh()
        return changed

    def reload(self) -> None:
        """Forget what was read and read it anew, after a rewind replaced files."""
        self._logs.clear()
        self._mapped.clear()
        self.refresh()

    @property
    def lost_episodes(self) -> dict[int, int]:
        """Episodes that are not shown because they were lost with the machine, by segment."""
        return self._logs.lost_episodes

    @property
    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments in numbers, by id."""
        return tuple(self._info(segment, log) for segment, log in self._logs.ordered())

    def _info(self, segment: int, log: CommitLog) -> SegmentInfo:
        header = header_of(log)
        return SegmentInfo(
            id=segment,
            run=header.run,
            lane=header.lane,
            rows=log.rows,
            steps=log.steps,
            episodes=len(log.records),
            capacity=header.capacity,
            sealed=log.sealed,
        )

    @property
    def n_steps(self) -> int:
        """Committed steps."""
        return sum(log.steps for log in self._logs)

    @property
    def n_episodes(self) -> int:
        """Committed episodes."""
        return sum(len(log.records) for log in self._logs)

    @property
    def n_rows(self) -> int:
        """Committed rows: steps and closing rows."""
        return sum(log.rows for log in self._logs)

    @property
    def episodes(self) -> pa.Table:
        """Every committed episode, one row each, by (segment, ordinal)."""
        return episode_table([(header_of(log), log.records) for _, log in self._logs.ordered()])

    def records(self, segment: int) -> np.ndarray[Any, Any]:
        """A segment's committed episodes as structured array (dtype commit_log.RECORD)."""
        return self.log(segment).records

    def segment(self, segment: int) -> MappedSegment:
        """Read-only maps of a segment; those asked for lately are held, within _MOST_MAPS."""
        log = self.log(segment)
        mapped = self._mapped.pop(segment, None) or MappedSegment(self.paths, self.schema, log)
        self._mapped[segment] = mapped
        if len(self._mapped) * len(self.schema.columns) > _MOST_MAPS:
            del self._mapped[next(iter(self._mapped))]
        return mapped

    def log(self, segment: int) -> CommitLog:
        """The commit log of a segment; KeyError when there is none."""
        return self._logs.get(segment)

    def episode(self, index: int) -> Episode:
        """The index-th committed episode by (segment, ordinal), as aligned arrays."""
        remaining = index + self.n_episodes if index < 0 else index
        for segment, log in self._logs.ordered():
            if 0 <= remaining < len(log.records):
                return self._episode(segment, log, remaining)
            remaining -= len(log.records)
        raise IndexError(f"episode {index} of {self.path}, which has {self.n_episodes}")

    def _episode(self, segment: int, log: CommitLog, ordinal: int) -> Episode:
        record = EpisodeRecord.of(header_of(log), log.records, ordinal)
        return read_episode(record, self.segment(segment), self.schema, self.env_spec)

    def iterate_episodes(self) -> Iterator[Episode]:
        """Every committed episode exactly once, by (segment, ordinal)."""
        for segment, log in self._logs.ordered():
            for ordinal in range(len(log.records)):
                yield self._episode(segment, log, ordinal)

    def to_dask(self) -> dict[str, dask.array.Array]:
        """The committed rows of every column as dask arrays that read lazily."""
        from storage.foreign import to_dask

        return to_dask(self)

    def to_xarray(self) -> xr.Dataset:
        """The committed rows as a dataset of lazy variables over the dimension ``row``."""
        from storage.foreign import to_xarray

        return to_xarray(self)

    def problems(self) -> list[str]:
        """What is missing or too short, one sentence each; looks at sizes, not at content."""
        from storage.problems import problems

        return problems(self)

    def require_writable(self, purpose: str) -> None:
        """Raise ReadOnlyStoreError when the store was opened for reading."""
        if self.mode == "r":
            raise ReadOnlyStoreError(
                f"{purpose} needs {self.path} opened for writing; use storage.open(path, mode='r+')"
            )

    def writer(
        self,
        lanes: int = 1,
        *,
        run: str = "",
        window: int = 2**18,
        row_budget: int | None = None,
        capacity: int | None = None,
        publish_interval: float = 1.0,
        nonfinite: Nonfinite = "refuse",
        seal: bool = False,
        durability: Durability = "process",
        sync_episodes: int = 1,
        sync_seconds: float = 0.0,
        continue_from: StorePosition | None = None,
    ) -> Writer:
        """A writer of ``lanes`` lanes, each with segments of its own.

        ``run`` is the unique name of the run, which ``rewind`` goes by. A segment seals at the
        first episode end past ``row_budget`` rows (default: an eighth of the window a lane, a
        power of two from 1,024 to 65,536), and with ``seal`` also when the writer closes: then
        nobody can go on from a position in it. Without ``continue_from``, open episodes that dead
        writers left are salvaged first, as truncated.

        A committed episode survives ``kill -9``; with ``durability="fsync"`` also a power cut: a
        commit then waits for the device, which takes milliseconds. ``sync_episodes`` and
        ``sync_seconds`` let episodes wait for each other: the device has them as soon as so many
        wait, or when one ends later than that after the oldest of them, and after ``sync()``.
        """
        from storage.problems import require_whole
        from storage.salvage import salvage
        from storage.writer import Writer
        from storage.writer_settings import (
            WriterSettings,
            capacity_for,
            default_row_budget,
            is_count,
            sync_rule,
        )

        self.require_writable("a writer")
        require_whole(self)
        counts = {"lanes": lanes, "window": window}
        if row_budget is not None:
            counts["row_budget"] = row_budget
        for name, value in counts.items():
            if not is_count(value):
                raise ConfigError(f"{name}={value!r}: give a whole number from 1")
        if publish_interval < 0 or nonfinite not in ("refuse", "end_episode"):
            raise ConfigError(
                f"publish_interval={publish_interval}, nonfinite={nonfinite!r}: give an interval "
                "from 0 s, and 'refuse' or 'end_episode'"
            )
        budget = row_budget or default_row_budget(window, lanes)
        settings = WriterSettings(
            store_uuid=self.uuid,
            run=run,
            row_budget=budget,
            capacity=capacity_for(capacity, budget, self.env_spec.max_episode_steps),
            publish_interval=publish_interval,
            nonfinite=nonfinite,
            seal=seal,
            sync=sync_rule(durability, sync_episodes, sync_seconds),
        )
        if continue_from is None:
            salvage(self)
        elif continue_from.store_uuid != self.uuid:
            raise ConfigError(
                f"the position belongs to store {continue_from.store_uuid}, not to {self.uuid} at "
                f"{self.path}"
            )
        return Writer(
            self.paths,
            self.schema,
            settings,
            lanes,
            continue_from=continue_from,
            on_close=self.refresh,
        )

    def overlay(self, name: str = "main", *, root: Path | None = None, mode: Mode = "r") -> Overlay:
        """A run's caches over the steps, in the store or below ``root`` (a run folder)."""
        from storage.overlay import Overlay

        if root is None and mode == "r+":
            self.require_writable(f"overlay {name!r}")
        folder = self.paths.overlays if root is None else Path(root) / "overlays"
        return Overlay(self, name, folder / f"{name}.zarr", mode)

    def replay(
        self,
        window: int,
        scheme: str = "uniform",
        *,
        priorities: PrioritySettings | None = None,
        sequences: SequenceSettings | None = None,
        forget: str = "oldest",
        seed: int = 0,
        private: bool = False,
        fields: Iterable[str] | None = None,
        overlay: str = "main",
        overlay_root: Path | None = None,
        discount: float = 0.995,
        reward_scale: float = 1.0,
        far_bound: float = 5.0,
        page_limit: int | None = None,
    ) -> ReplayView:
        """A replay view of the newest ``window`` steps; see storage.replay.ReplayView.

        The same ``seed`` draws the same batches. ``private`` keeps what is fed back in this
        process, so that a store opened for reading is enough. ``fields`` are the columns that
        batches hold (default: all). Otherwise the overlay called ``overlay`` is written, in the
        store or below ``overlay_root``. ``discount``, ``reward_scale`` and ``far_bound`` are those
        of the value targets and of far steps, until the agent says otherwise. ``scheme`` is
        "uniform", "per" or "pser"; ``priorities`` and ``sequences`` are its settings (default: the
        papers'). ``forget`` is which episode leaves a full window: the "oldest", the "most_far"
        one, or that of "largest_divergence". ``page_limit`` is how many bytes of the store's pages
        draws may leave mapped in this process (default: as many as the kernel lets them).
        """
        from storage.replay import ReplayView

        return ReplayView(
            self,
            window=window,
            scheme=scheme,
            priorities=priorities,
            sequences=sequences,
            forget=forget,
            overlay=overlay,
            overlay_root=overlay_root,
            seed=seed,
            fields=fields,
            private=private,
            discount=discount,
            reward_scale=reward_scale,
            far_bound=far_bound,
            page_limit=page_limit,
        )

    def close(self) -> None:
        """Let go of all maps that nothing else uses; may be called twice."""
        self._mapped.clear()

    def __repr__(self) -> str:
        size = f"{self.n_steps:,} steps in {self.n_episodes:,} episodes"
        return f"<Store {self.path} ({self.mode}): {self.env_spec.id}, {size}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
