"""The closest known name to a mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(word: str, names: Iterable[str]) -> str:
    """A phrase to put behind "there is no …": `", did you mean 'train'?"`, or nothing.

    A dotted name also matches by its last part, so that `steps` finds `loop.steps`.
    """
    known = list(names)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if not close:
        by_tail = {name.rsplit(".", 1)[-1]: name for name in reversed(known)}
        tails = difflib.get_close_matches(word.rsplit(".", 1)[-1], by_tail, n=1, cutoff=0.7)
        close = [by_tail[tail] for tail in tails]
    return f", did you mean {close[0]!r}?" if close else ""
