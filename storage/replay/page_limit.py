"""A limit on the mapped pages of the window that a process holds.

Pages of files are the kernel's to reclaim when memory is short. Where that is too late, because
others on the machine need the memory or count this process's pages, a limit lets them go earlier.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from storage.errors import ConfigError
from storage.mapping import drop_pages
from storage.writer_settings import is_count

if TYPE_CHECKING:
    from storage.replay.segment_table import SegmentTable

__all__ = ["PageLimit", "drop_columns", "shared_bytes"]

_PAGE: Final = os.sysconf("SC_PAGESIZE")
_SELDOM: Final = 64
"""Draws between two looks at most: one takes some microseconds."""


def shared_bytes() -> int:
    """Resident pages of files and shared memory of this process, in bytes."""
    descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(descriptor, 128).split()[2]) * _PAGE
    finally:
        os.close(descriptor)


def drop_columns(segments: SegmentTable, columns: Sequence[str]) -> None:
    """Let go of the pages of written-once columns of every segment of the window."""
    for maps in segments.held:
        for name in columns:
            drop_pages(maps.columns.array(name))


class PageLimit:
    """Calls ``drop`` when a process's shared pages have grown by more than ``limit`` bytes.

    Counted from what is there at first and after each drop: libraries and overlays are not meant.
    The fewer bytes are left, and the faster they go, the more often it looks, at most once a draw.
    Without a limit (None) it never does. Raises ConfigError for no positive number of bytes.
    """

    def __init__(
        self,
        limit: int | None,
        drop: Callable[[], object],
        resident: Callable[[], int] = shared_bytes,
    ) -> None:
        if limit is not None and not is_count(limit):
            raise ConfigError(
                f"page_limit={limit!r}: give a positive number of bytes, or None for no limit"
            )
        self.limit = limit
        self.drops = 0
        """How often pages were let go."""
        self._drop = drop
        self._resident = resident
        self._base = self._seen = resident()
        self._fastest = self._rate = float(_PAGE)
        self._every = self._left = 1

    def drawn(self) -> None:
        """Count a draw, and look where it is time to."""
        if self.limit is None:
            return
        self._left -= 1
        if not self._left:
            self._look(self.limit)
            self._left = self._every

    def _look(self, limit: int) -> None:
        now = self._resident()
        grown = (now - self._seen) / self._every
        self._fastest = max(self._fastest, grown)
        self._rate = max(grown, self._rate / 2, _PAGE)
        self._base = min(self._base, now)
        if now - self._base > limit:
            self._drop()
            self.drops += 1
            now = self._base = self._resident()
            self._rate = self._fastest
        self._seen = now
        room = limit - (now - self._base)
        self._every = int(min(max(room / (2 * self._rate), 1), _SELDOM))
