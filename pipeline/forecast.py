"""What a collection or a run will take of the machine, told before it begins."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.streams import complain
from pipeline.summary import disk_use
from pipeline.summary_table import byte_text
from storage.disk_need import DiskNeed, disk_need, overlay_need, record_need
from storage.errors import ConfigError, DiskFullError
from storage.machine import (
    anonymous_memory,
    available_memory,
    descriptor_limit,
    map_limit,
)
from storage.overlay import OVERLAY_COLUMNS
from storage.schema import make_schema

if TYPE_CHECKING:
    from storage.schema import Schema
    from training.agent import ReplayAgent
    from training.config import RunConfig
    from training.preflight import CheckedRun

__all__ = [
    "SHORTEST",
    "Forecast",
    "announce_run",
    "check",
    "forecast_collection",
    "forecast_run",
    "free_disk",
]

_ENTRY_BYTES: Final = 16 + 8
"""Of a step of the window: its ring entry, and its segment's row map, which doubles."""
_TREE_BYTES: Final = 21
"""Of a step of the window that is drawn by priority."""
_OVERLAY_BYTES: Final = sum(column.row_bytes for column in OVERLAY_COLUMNS)
_COPIES: Final = 3
"""Of the window's overlay while a checkpoint is being written."""
_PARAMETER_COPIES: Final = 8
"""Of a network: gradients, the optimizer's state, and a checkpoint of all of it."""
_OTHER_MAPS: Final = 2_000
"""Libraries, the heap and stacks."""
_OTHER_FILES: Final = 64
_FILES_A_LANE: Final = 4
_UNKNOWN_LENGTH: Final = 1_000
SHORTEST: Final = 5
"""Steps of the shortest episodes, on average, that a collection's forecast reckons with."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Bytes and counts; what does not apply is 0."""

    disk: int
    """At most, while it is being written."""
    first: int
    """Disk that is taken before the first step."""
    memory: int = 0
    """Of the whole process; pages of files come on top, but the kernel takes them back."""
    maps: int = 0
    files: int = 0


def forecast_collection(schema: Schema, steps: int, lanes: int, longest: int | None) -> Forecast:
    """Of `sharpwave collect`, if episodes have `SHORTEST` steps on average, or more.

    Nothing tells how early episodes end; each has a closing row, a record and a line in a table.
    """
    least = min(SHORTEST, longest or SHORTEST)
    need = disk_need(schema, steps, lanes=lanes, longest=longest, shortest=least)
    total = need.total + record_need(schema, steps, lanes=lanes, longest=longest, shortest=least)
    files = _OTHER_FILES + _FILES_A_LANE * lanes
    maps = _OTHER_MAPS + 2 * lanes * len(schema.columns)
    return Forecast(total, need.first, maps=maps, files=files)


def _schema(run: CheckedRun) -> Schema:
    """Of the store that a run writes; about that of the one it only reads."""
    recorded = dataclasses.asdict(run.recording)
    return make_schema(run.spec.observation_space, run.spec.action_space, **recorded)


def forecast_run(run: CheckedRun, parameters: int) -> Forecast:
    """Of `sharpwave train`; `parameters` are the bytes of the agent's networks."""
    config, replay, loop = run.config, run.config.replay, run.config.loop
    longest = run.spec.max_episode_steps
    window = replay.window + (longest or _UNKNOWN_LENGTH)
    shape = {"lanes": loop.lanes, "window": replay.window, "longest": longest}
    schema = _schema(run)
    held = overlay_need(window, **shape)  # type: ignore[arg-type]
    segments = held.segments + loop.lanes
    checkpoints = _checkpoint_bytes(config, window, parameters)
    if replay.store is not None:
        stored = DiskNeed(held.total, held.first, held.segments)
    else:
        stored = _stored(config, schema, longest)
    return Forecast(
        disk=stored.total + checkpoints,
        first=stored.first + parameters,
        memory=anonymous_memory() + _window_bytes(config, window) + _PARAMETER_COPIES * parameters,
        maps=_OTHER_MAPS
        + segments * (len(schema.columns) + len(OVERLAY_COLUMNS))
        + loop.lanes * len(schema.columns),
        files=_OTHER_FILES + _FILES_A_LANE * loop.lanes,
    )


def announce_run(run: CheckedRun, module: ReplayAgent, path: Path) -> None:
    """Prints what the run in the folder `path` will take, beyond what it has taken already.

    Raises:
        DiskFullError: there is no room for the first step.
        ConfigError: the process may not have so many maps or files.
    """
    parameters = sum(each.numel() * each.element_size() for each in module.parameters())
    forecast = forecast_run(run, parameters)
    used = disk_use(path)["total"] if path.is_dir() else 0
    memory, rest = available_memory(), max(forecast.disk - used, 0)
    available = "" if memory is None else f", {byte_text(memory)} are available"
    print(
        f"It takes some {byte_text(rest)}{' more' if used else ''} of the disk, "
        f"{byte_text(free_disk(path))} are free; and some {byte_text(forecast.memory)} of "
        f"memory{available}"
    )
    check(forecast, path, used)


def free_disk(path: Path) -> int:
    """Bytes that are free where `path` is, or will be."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def check(forecast: Forecast, path: Path, used: int = 0) -> None:
    """Warns of what will not do; see `announce_run`."""
    free = free_disk(path)
    if forecast.first > free and not used:
        raise DiskFullError(
            f"{path}: the first step needs {byte_text(forecast.first)} on the disk, "
            f"{byte_text(free)} are free; free some space, or choose a path on another disk"
        )
    for warning in _warnings(forecast, free + used):
        complain(f"sharpwave: warning: {warning}")


def _warnings(forecast: Forecast, free: int) -> Iterator[str]:
    memory = available_memory()
    if forecast.disk > free:
        remedy = ". With --replay.retention=drop a run takes less" if forecast.memory else ""
        yield f"the disk will fill up before the end{remedy}"
    if memory is not None and forecast.memory - anonymous_memory() > memory:
        yield "that is more memory than there is; lower replay.window"
    maps, files = map_limit(), descriptor_limit()
    if maps is not None and forecast.maps > maps // 2:
        yield _beyond(
            forecast.maps, maps, "memory maps", "replay.window", "sysctl vm.max_map_count"
        )
    if files > 0 and forecast.files > files // 2:
        yield _beyond(forecast.files, files, "open files", "the number of lanes", "ulimit -n")


def _beyond(needed: int, limit: int, what: str, setting: str, remedy: str) -> str:
    """A warning above half of a limit of the system; ConfigError above all of it."""
    text = (
        f"this takes some {needed:,} {what}, and a process may have {limit:,}; lower {setting}, "
        f"or raise the limit ({remedy})"
    )
    if needed > limit:
        raise ConfigError(text)
    return text


def _stored(config: RunConfig, schema: Schema, longest: int | None) -> DiskNeed:
    """The run's own store, with its overlay."""
    replay, loop = config.replay, config.loop
    steps = loop.steps if replay.retention == "keep" else min(loop.steps, _kept_steps(config))
    parts = (
        disk_need(schema, steps, lanes=loop.lanes, window=replay.window, longest=longest),
        overlay_need(steps, lanes=loop.lanes, window=replay.window, longest=longest),
    )
    total, first = sum(each.total for each in parts), sum(each.first for each in parts)
    total += record_need(schema, steps, lanes=loop.lanes, window=replay.window, longest=longest)
    return DiskNeed(total, first, parts[0].segments)


def _kept_steps(config: RunConfig) -> int:
    """Steps that retention leaves: windows of the last two checkpoints and of the best one."""
    from storage.writer_settings import default_row_budget

    windows = 2 if config.evaluation.episodes else 1
    partial = 3 * config.loop.lanes * default_row_budget(config.replay.window, config.loop.lanes)
    return windows * (config.replay.window + partial) + 2 * config.checkpoint.every_steps


def _checkpoint_bytes(config: RunConfig, window: int, parameters: int) -> int:
    """The checkpoints that are kept, and the one that is being written."""
    steps = min(window, config.loop.steps)
    kept = 4 if config.evaluation.episodes else 3
    return kept * (3 * parameters + steps * (_OVERLAY_BYTES + 8))


def _window_bytes(config: RunConfig, window: int) -> int:
    """The window's tables, the tree, and what a checkpoint copies of them."""
    steps = min(window, config.loop.steps)
    places = 1 << (steps - 1).bit_length()
    each = _ENTRY_BYTES + (_TREE_BYTES if config.replay.prioritized else 0)
    return places * each + _COPIES * steps * _OVERLAY_BYTES
