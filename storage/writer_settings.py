"""How a writer cuts its data into segments, checks it and shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from storage.errors import ConfigError
from storage.layout import DEFAULT_CAPACITY, INNER_ROWS, LARGEST_CAPACITY
from storage.syncing import Durability, SyncRule

__all__ = [
    "Nonfinite",
    "WriterSettings",
    "capacity_for",
    "default_row_budget",
    "is_count",
    "sync_rule",
]

_LARGEST_CAPACITY = 2**22
Nonfinite = Literal["refuse", "end_episode"]


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """How a writer cuts its data into segments and shows them."""

    store_uuid: str
    run: str
    row_budget: int
    """A segment seals at the first episode end at or past so many rows."""
    capacity: int
    """Rows that a segment can hold at most."""
    publish_interval: float
    """Seconds between two publications of a segment; 0 publishes each episode."""
    nonfinite: Nonfinite
    seal: bool = False
    """Closing seals the segments, because nobody will go on with them."""
    sync: SyncRule | None = None
    """When commits are brought to the device; None leaves that to the kernel."""


def sync_rule(durability: Durability, episodes: int, seconds: float) -> SyncRule | None:
    """The rule that a writer's settings ask for; ConfigError for settings that cannot be."""
    if durability not in ("process", "fsync"):
        raise ConfigError(f"durability={durability!r}: choose 'process' or 'fsync'")
    if not is_count(episodes) or not 0 <= seconds < math.inf:
        raise ConfigError(
            f"sync_episodes={episodes!r}, sync_seconds={seconds!r}: give a whole number from 1 and "
            "a number of seconds from 0"
        )
    if durability == "fsync":
        return SyncRule(episodes, seconds)
    if (episodes, seconds) != (1, 0.0):
        raise ConfigError("sync_episodes and sync_seconds are settings of durability='fsync'")
    return None


def _power_of_two(value: int) -> int:
    return 1 << max(0, (value - 1).bit_length())


def default_row_budget(window: int, lanes: int) -> int:
    """An eighth of the window a lane: a power of two from 1,024 to 65,536 rows."""
    return min(max(_power_of_two(window // (8 * lanes)), 1024), 65_536)


def capacity_for(asked: int | None, budget: int, longest: int | None) -> int:
    """Rows of a segment: room for the budget and one longest episode, if not asked otherwise."""
    if asked is None:
        wished = max(DEFAULT_CAPACITY, _power_of_two(budget + (longest or 0) + 1))
        return min(wished, _LARGEST_CAPACITY)
    if not is_count(asked) or asked % INNER_ROWS or asked > LARGEST_CAPACITY:
        raise ConfigError(
            f"capacity={asked!r}: a segment holds a positive multiple of {INNER_ROWS} rows, at "
            f"most {LARGEST_CAPACITY:,}"
        )
    return asked


def is_count(value: object) -> bool:
    """Whether the value is an int from 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
