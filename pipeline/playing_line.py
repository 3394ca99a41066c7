"""Which episode is being played, and how far it is: for episodes that nobody knows the end of."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from pipeline.streams import complain

__all__ = ["playing_line"]

_LIVE: Final = 0.2
"""Seconds between two looks at a live line."""


@contextmanager
def playing_line(episodes: int, *, interval: float = 30.0) -> Iterator[Callable[[int, int], None]]:
    """A function that gets the number of the episode, from 0, and its steps so far, at every step.

    A live line on stderr where that is a terminal, elsewhere a line every `interval` seconds.
    """
    if not sys.stderr.isatty():
        yield _Paced(episodes, interval, complain)
        return
    from rich.console import Console

    with Console(stderr=True).status(_line(episodes, 0, 0)) as status:
        yield _Paced(episodes, _LIVE, status.update)


class _Paced:
    """Shows the line, at most once in so many seconds."""

    def __init__(self, episodes: int, interval: float, show: Callable[[str], object]) -> None:
        self._episodes = episodes
        self._interval = interval
        self._show = show
        self._shown = time.monotonic()

    def __call__(self, number: int, steps: int) -> None:
        now = time.monotonic()
        if now - self._shown >= self._interval:
            self._shown = now
            self._show(_line(self._episodes, number, steps))


def _line(episodes: int, number: int, steps: int) -> str:
    return f"episode {number + 1:,} of {episodes:,}: {steps:,} steps"
