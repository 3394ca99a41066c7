"""What a repair does, as it is told before and after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from storage.layout import segment_name

__all__ = ["Action", "ActionKind", "RepairReport"]

ActionKind = Literal[
    "correct-log", "void", "set-aside", "cut-tail", "derive", "restore-root", "drop-overlay"
]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that is done to one segment, or to the store."""

    kind: ActionKind
    segment: int | None
    what: str
    ordinals: tuple[int, ...] = ()
    """Episodes that count for nobody afterwards."""
    files: tuple[str, ...] = ()
    """Files that are written anew or moved, relative to the store."""

    def to_json(self) -> dict[str, Any]:
        """The action as JSON values."""
        return {
            "kind": self.kind,
            "segment": None if self.segment is None else segment_name(self.segment),
            "what": self.what,
            "ordinals": list(self.ordinals),
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
        """Episodes that were taken out."""
        return sum(len(action.ordinals) for action in self.actions)

    def to_json(self) -> dict[str, Any]:
        """The whole report as JSON values."""
        return {
            "path": str(self.path),
            "dry_run": self.dry_run,
            "episodes_lost": self.episodes_lost,
            "quarantined": list(self.quarantined),
            "actions": [action.to_json() for action in self.actions],
        }
