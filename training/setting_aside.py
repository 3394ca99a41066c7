"""Damaged files get another name, so that new ones may take their place; nothing is deleted."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["free_name", "set_aside"]


def free_name(path: Path, ending: str = "") -> Path:
    """A free name beside ``path``: ``last.damaged``, ``last.damaged.1`` and so on.

    Args:
        path: The damaged file.
        ending: What the name keeps at its end, such as ".csv".
    """
    names = itertools.chain([".damaged"], (f".damaged.{number}" for number in itertools.count(1)))
    free = (path.with_name(f"{path.stem}{name}{ending}") for name in names)
    return next(each for each in free if not each.exists() and not each.is_symlink())


def set_aside(path: Path, ending: str = "") -> Path:
    """Renames a damaged file to a free name beside it, which is given."""
    aside = free_name(path, ending)
    path.rename(aside)
    return aside
