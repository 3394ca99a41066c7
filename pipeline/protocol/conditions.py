"""The conditions under which phases were played: what must be alike for scores to be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from storage.errors import ConfigError

__all__ = ["CONDITIONS", "check_comparable"]

CONDITIONS: Final = (
    *("epsilon", "noop_max", "frames_budget"),
    *("frame_skip", "max_frames", "sticky", "full_actions", "wrappers"),
)
"""Columns of `played_schema` that define the protocol: who acts how, for how long, in which game.

What the agent sees (stack, screen) and how it was trained is the method's; seeds may differ.
"""
_NAMED: Final = 3

_Rows = Sequence[Mapping[str, Any]]


def check_comparable(files: Mapping[Path, _Rows]) -> None:
    """Refuses files whose phases were broken off, or were not all played in the same way.

    Raises:
        ConfigError: naming the files, and each column in which they differ with its values.
    """
    for path, rows in files.items():
        if not rows:
            raise ConfigError(f"{path} has no episode; leave it out")
        if not all(row["complete"] for row in rows):
            raise ConfigError(
                f"{path} is of a phase that was interrupted, after {_played(rows)}; play it to "
                "its end, or leave it out"
            )
    differences = [each for name in CONDITIONS if (each := _difference(name, files))]
    if differences:
        raise ConfigError(
            f"these phases were not played by one protocol: {'; '.join(differences)}. Scores can "
            "be compared where all of that is the same; name such files, or play phases again"
        )


def _played(rows: _Rows) -> str:
    frames = sum(row["steps"] * row["frame_skip"] for row in rows)
    count = f"{len(rows)} episode{'s' * (len(rows) > 1)}"
    return f"{count} and {frames:,} of {rows[0]['frames_budget']:,} frames"


def _difference(name: str, files: Mapping[Path, _Rows]) -> str | None:
    """The values of a column and where each is; None where there is one."""
    where: dict[Any, dict[Path, None]] = {}
    for path, rows in files.items():
        for row in rows:
            where.setdefault(row[name], {}).setdefault(path)
    if len(where) < 2:
        return None
    return f"{name} is " + " and ".join(
        f"{_shown(value)} in {_listed(paths)}" for value, paths in where.items()
    )


def _shown(value: Any) -> str:
    return "none" if value == "" else str(value)


def _listed(paths: Iterable[Path]) -> str:
    names = [str(path) for path in paths]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
