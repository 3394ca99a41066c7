"""What a repair does, as it is told before and after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from storage.layout import segment_name

__all__ = ["Action", "ActionKind", "RepairReport"]

ActionKind = Literal[
    "correct-log",
    "void",
    "set-aside",
    "keep-rows",
    "cut-tail",
    "derive",
    "restore-root",
    "drop-overlay",
    "clear-lock",
]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that is done to one segment, or to the store."""

    kind: ActionKind
    segment: int | None
    what: str
    ordinals: tuple[int, ...] = ()
    """Episodes that count for nobody afterwards."""
    episodes: int | None = 0
    """How many those are, or were; None where nobody knows."""
    files: tuple[str, ...] = ()
    """Files that are written anew or moved, relative to the store."""

    def to_json(self) -> dict[str, Any]:
        """The action as JSON values."""
        return {
            "kind": self.kind,
            "segment": None if self.segment is None else segment_name(self.segment),
            "what": self.what,
            "ordinals": list(self.ordinals),
            "episodes": self.episodes,
            "files": list(self.files),
        }

    def __str__(self) -> str:
        where = "store" if self.segment is None else f"segment {segment_name(self.segment)}"
        return f"{where}: {self.what}"


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did, or in a dry run would do."""

    path: Path
    actions: tuple[Action, ...]
    dry_run: bool
    quarantined: tuple[str, ...]
    """Folders below quarantine/ that were added to; none in a dry run."""

    @property
    def episodes_lost(self) -> int:
        """Episodes that were taken out, or set aside with their segments, as far as is known."""
        return sum(action.episodes or 0 for action in self.actions)

    @property
    def episodes_set_aside(self) -> int:
        """Those of them whose segments were set aside, as far as is known."""
        return sum(action.episodes or 0 for action in self.actions if action.kind == "set-aside")

    @property
    def segments_of_unknown_length(self) -> int:
        """Segments set aside of which nobody knows how many episodes they had."""
        return sum(action.episodes is None for action in self.actions)

    def to_json(self) -> dict[str, Any]:
        """The whole report as JSON values."""
        return {
            "path": str(self.path),
            "dry_run": self.dry_run,
            "episodes_lost": self.episodes_lost,
            "episodes_set_aside": self.episodes_set_aside,
            "segments_of_unknown_length": self.segments_of_unknown_length,
            "quarantined": list(self.quarantined),
            "actions": [action.to_json() for action in self.actions],
        }
