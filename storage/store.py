"""A store: the folder that holds an agent's experience, opened for reading or writing."""

from __future__ import annotations

import json
import os
import shutil
import uuid as uuids
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from storage.atomic import disk_full_as_error
from storage.columns import Columns
from storage.commit_log import CommitLog
from storage.environment_spec import EnvironmentSpec
from storage.episode import Episode, read_episode
from storage.episode_table import EpisodeRecord, episode_table
from storage.errors import (
    ConfigError,
    CorruptStoreError,
    FormatVersionError,
    ReadOnlyStoreError,
    StoreExistsError,
    StoreNotFoundError,
)
from storage.layout import (
    DEFAULT_CAPACITY,
    FORMAT_VERSION,
    INNER_ROWS,
    Ending,
    StorePaths,
    align_up,
    segment_name,
)
from storage.position import StorePosition
from storage.schema import Schema, StackPadding, make_schema
from storage.segment import MappedSegment, SegmentInfo, header_of
from storage.zarr_metadata import encode, group_document

if TYPE_CHECKING:
    import dask.array
    import pyarrow as pa
    import xarray as xr

    from storage.overlay import Overlay
    from storage.writer import Writer

__all__ = ["Store", "create", "open"]

Mode = Literal["r", "r+"]


def create(
    path: str | os.PathLike[str],
    env_spec: EnvironmentSpec,
    *,
    behaviour: str | None = None,
    info: Mapping[str, Any] | None = None,
    frame_stack: int | None = None,
    first_stack_padding: StackPadding | None = None,
    life_loss: bool = False,
) -> Store:
    """Make a new, empty store at ``path`` and open it for writing.

    ``behaviour`` is the family of the policies' distributions ("gaussian", "categorical",
    "unknown"; default by the action space); ``info`` maps info keys that are kept to a dtype or
    (dtype, shape); ``life_loss`` adds the ``life_lost`` column. Raises StoreExistsError when
    something is there, UnsupportedSpaceError naming a space that has no column layout.
    """
    schema = make_schema(
        env_spec.observation_space,
        env_spec.action_space,
        behaviour=behaviour,
        info=info,
        frame_stack=frame_stack,
        first_stack_padding=first_stack_padding,
        life_loss=life_loss,
    )
    root = Path(path).absolute()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise StoreExistsError(
            f"cannot create a store at {root}: something is there. Open it with "
            "storage.open(path, mode='r+'), or choose another path."
        )
    _build(root, schema, env_spec)
    return open(root, mode="r+")


def _build(root: Path, schema: Schema, env_spec: EnvironmentSpec) -> None:
    """Make the folders beside the path and rename them into place at once."""
    attributes = {
        "format_version": FORMAT_VERSION,
        "store_uuid": str(uuids.uuid4()),
        "behaviour_family": schema.behaviour_family,
        "environment": env_spec.to_json(),
        "schema": schema.to_json(),
    }
    staged = root.with_name(f".{root.name}.{os.getpid()}.creating")
    with disk_full_as_error(root, 0):
        try:
            staged.mkdir(parents=True)
            paths = StorePaths(staged)
            for folder in paths.folders():
                folder.mkdir()
            (paths.steps / "zarr.json").write_bytes(encode(group_document(attributes)))
            staged.rename(root)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise


def open(path: str | os.PathLike[str], mode: Mode = "r") -> Store:  # noqa: A001
    """Open the store at ``path``; mode "r" never changes a byte, "r+" may write.

    Raises StoreNotFoundError, FormatVersionError, CorruptStoreError.
    """
    if mode not in ("r", "r+"):
        raise ConfigError(f"mode {mode!r}: choose 'r' (read) or 'r+' (read and write)")
    root = Path(path).absolute()
    return Store(root, mode, _attributes(root))


def _attributes(root: Path) -> dict[str, Any]:
    metadata = StorePaths(root).steps / "zarr.json"
    try:
        attributes = json.loads(metadata.read_text())["attributes"]
        version = attributes["format_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise StoreNotFoundError(
            f"{root} is no Sharpwave store: there is no {metadata}. Give the folder that holds "
            "steps.zarr and log, or make a store with storage.create."
        ) from None
    except (ValueError, KeyError, TypeError):
        raise CorruptStoreError(
            f"{metadata} does not describe a Sharpwave store; restore it from a copy"
        ) from None
    if version > FORMAT_VERSION:
        raise FormatVersionError(
            f"{root} is of format version {version}; this release reads up to {FORMAT_VERSION}. "
            "Install a newer Sharpwave."
        )
    return dict(attributes)


class Store:
    """An opened store. What it shows is fixed until ``refresh``."""

    def __init__(self, root: Path, mode: Mode, attributes: Mapping[str, Any]) -> None:
        self.path = root
        self.paths = StorePaths(root)
        self.mode: Mode = mode
        self.uuid: str = attributes["store_uuid"]
        self.env_spec = EnvironmentSpec.from_json(attributes["environment"])
        self.schema = Schema.from_json(
            attributes["schema"], self.env_spec.observation_space, self.env_spec.action_space
        )
        self.columns = Columns(self.schema, self._mapped_segments)
        """Columns by name: ``store.columns["reward"][a:b]``, rows of all segments in order."""
        self._logs: dict[int, CommitLog] = {}
        self._mapped: dict[int, MappedSegment] = {}
        self.refresh()

    # What is there ------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Take in what was committed since; True when there was anything."""
        found = {int(file.stem) for file in self.paths.logs.glob("*.log")}
        changed = bool(self._logs.keys() - found)
        for gone in self._logs.keys() - found:
            del self._logs[gone]
            self._mapped.pop(gone, None)
        for segment in sorted(found):
            changed |= self._refresh_segment(segment)
        return changed

    def reload(self) -> None:
        """Forget what was read and read it anew, after a rewind replaced files."""
        self._logs.clear()
        self._mapped.clear()
        self.refresh()

    def _refresh_segment(self, segment: int) -> bool:
        log = self._logs.get(segment)
        if log is None:
            log = CommitLog(self.paths.log(segment))
            self._check(log)
            self._logs[segment] = log
            return True
        changed = False if log.sealed else log.refresh()
        if segment in self._mapped:
            self._mapped[segment].refresh()
        return changed

    def _check(self, log: CommitLog) -> None:
        header = header_of(log)
        names = [column.name for column in self.schema.columns]
        if header.store_uuid != self.uuid or header.columns != names:
            raise CorruptStoreError(
                f"{log.path} belongs to store {header.store_uuid}, not to {self.uuid} at "
                f"{self.path}; move it and its segment out"
            )

    def _ordered(self) -> list[tuple[int, CommitLog]]:
        return sorted(self._logs.items())

    @property
    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments in numbers, by id."""
        return tuple(self._info(segment, log) for segment, log in self._ordered())

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
        return sum(log.steps for log in self._logs.values())

    @property
    def n_episodes(self) -> int:
        """Committed episodes."""
        return sum(len(log.records) for log in self._logs.values())

    @property
    def n_rows(self) -> int:
        """Committed rows: steps and closing rows."""
        return sum(log.rows for log in self._logs.values())

    # Reading ------------------------------------------------------------------------------------

    @property
    def episodes(self) -> pa.Table:
        """Every committed episode, one row each, by (segment, ordinal)."""
        return episode_table([(header_of(log), log.records) for _, log in self._ordered()])

    def records(self, segment: int) -> np.ndarray[Any, Any]:
        """A segment's committed episodes as structured array (dtype commit_log.RECORD)."""
        return self.log(segment).records

    def segment(self, segment: int) -> MappedSegment:
        """Read-only maps of a segment, the same object each time."""
        if segment not in self._mapped:
            self._mapped[segment] = MappedSegment(self.paths, self.schema, self.log(segment))
        return self._mapped[segment]

    def _mapped_segments(self) -> list[MappedSegment]:
        return [self.segment(segment) for segment, _ in self._ordered()]

    def log(self, segment: int) -> CommitLog:
        """The commit log of a segment; KeyError when there is none."""
        if segment not in self._logs and self.paths.log(segment).exists():
            self._refresh_segment(segment)
        if segment not in self._logs:
            raise KeyError(f"{self.path} has no segment {segment_name(segment)}")
        return self._logs[segment]

    def episode(self, index: int) -> Episode:
        """The index-th committed episode by (segment, ordinal), as aligned arrays."""
        remaining = index + self.n_episodes if index < 0 else index
        for segment, log in self._ordered():
            if 0 <= remaining < len(log.records):
                return self._episode(segment, log, remaining)
            remaining -= len(log.records)
        raise IndexError(f"episode {index} of {self.path}, which has {self.n_episodes}")

    def _episode(self, segment: int, log: CommitLog, ordinal: int) -> Episode:
        record = _episode_record(log, ordinal)
        return read_episode(record, self.segment(segment), self.schema, self.env_spec)

    def iterate_episodes(self) -> Iterator[Episode]:
        """Every committed episode exactly once, by (segment, ordinal)."""
        for segment, log in self._ordered():
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

    # Writing ------------------------------------------------------------------------------------

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
        nonfinite: Literal["refuse", "end_episode"] = "refuse",
        continue_from: StorePosition | None = None,
    ) -> Writer:
        """A writer of ``lanes`` lanes, each with segments of its own.

        ``run`` is the unique name of the run, which ``rewind`` goes by. A segment seals at the
        first episode end past ``row_budget`` rows (default: an eighth of the window a lane, a
        power of two from 1,024 to 65,536). Without ``continue_from``, open episodes that dead
        writers left are salvaged first, as truncated.
        """
        from storage.salvage import salvage
        from storage.writer import Writer, WriterSettings

        self.require_writable("a writer")
        if lanes < 1 or publish_interval < 0 or nonfinite not in ("refuse", "end_episode"):
            raise ConfigError(
                f"lanes={lanes}, publish_interval={publish_interval}, nonfinite={nonfinite!r}: "
                "give at least 1 lane, an interval from 0 s, and 'refuse' or 'end_episode'"
            )
        budget = row_budget or _row_budget(window, lanes)
        settings = WriterSettings(
            store_uuid=self.uuid,
            run=run,
            row_budget=budget,
            capacity=_capacity(capacity, budget, self.env_spec.max_episode_steps),
            publish_interval=publish_interval,
            nonfinite=nonfinite,
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

    def replay(self, window: int, scheme: str = "uniform", **settings: Any) -> Any:
        """A replay view of the newest ``window`` steps; see storage.replay.ReplayView."""
        from storage.replay import ReplayView

        return ReplayView(self, window=window, scheme=scheme, **settings)

    def close(self) -> None:
        """Let go of all maps that nothing else uses; may be called twice."""
        self._mapped.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _episode_record(log: CommitLog, ordinal: int) -> EpisodeRecord:
    row = log.records[ordinal]
    header = header_of(log)
    return EpisodeRecord(
        segment=header.segment,
        ordinal=ordinal,
        start=int(row["start"]),
        length=int(row["length"]),
        ending=Ending(int(row["ending"])),
        episode_return=float(row["return"]),
        seed=int(row["seed"]) if row["seed_known"] else None,
        lane=header.lane,
        lane_episode=int(row["lane_episode"]),
    )


def _power_of_two(value: int) -> int:
    return 1 << max(0, (value - 1).bit_length())


def _row_budget(window: int, lanes: int) -> int:
    return min(max(_power_of_two(window // (8 * lanes)), 1024), 65_536)


def _capacity(asked: int | None, budget: int, longest: int | None) -> int:
    if asked is None:
        return max(DEFAULT_CAPACITY, _power_of_two(budget + (longest or 0) + 1))
    if asked < 2:
        raise ConfigError(f"capacity={asked}: a segment holds at least 2 rows")
    return align_up(asked, INNER_ROWS)
