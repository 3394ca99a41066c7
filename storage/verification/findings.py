"""What an examination found: one finding a fault, and the report that gathers them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from storage.layout import segment_name
from storage.verification.fault_kinds import FAULT_KINDS, Severity
from storage.verification.regular_files import CannotJudgeError

__all__ = ["NOT_READABLE", "Finding", "Report", "SegmentCheck", "finding", "hidden_finding"]

_ORDINALS_NAMED = 5
NOT_READABLE = "not-readable"
"""The kind of what could not be judged."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: what is wrong where, and the way out."""

    severity: Severity
    kind: str
    """A name that stays, one of FAULT_KINDS."""
    what: str
    remedy: str
    file: str
    """Relative to the store."""
    segment: int | None = None
    ordinals: tuple[int, ...] = ()
    """Episodes of the segment that it concerns; none where it concerns no episode."""
    rows: tuple[int, int] | None = None
    """First row, and the one after the last, that it was seen in."""

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {
            "severity": self.severity,
            "kind": self.kind,
            "segment": None if self.segment is None else segment_name(self.segment),
            "file": self.file,
            "ordinals": list(self.ordinals),
            "rows": None if self.rows is None else list(self.rows),
            "what": self.what,
            "remedy": self.remedy,
        }

    def __str__(self) -> str:
        return f"{self.severity} {self.kind}: {self.file}: {self.what}"


def finding(
    kind: str,
    file: str,
    what: str,
    *,
    segment: int | None = None,
    ordinals: Iterable[int] = (),
    rows: tuple[int, int] | None = None,
    of: int | None = None,
    remedy: str = "",
) -> Finding:
    """A finding of a known kind, which gives its severity and, unless it is given, the remedy.

    The segment has ``of`` episodes.
    """
    known = FAULT_KINDS[kind]
    named = tuple(int(ordinal) for ordinal in ordinals)
    if len(named) == of and of > 1:
        what = f"{what} (all {of:,} episodes)"
    elif named:
        shown = ", ".join(str(ordinal) for ordinal in named[:_ORDINALS_NAMED])
        more = f" and {len(named) - _ORDINALS_NAMED:,} more" * (len(named) > _ORDINALS_NAMED)
        what = f"{what} (episode{'s' if len(named) > 1 else ''} {shown}{more})"
    return Finding(known.severity, kind, what, remedy or known.remedy, file, segment, named, rows)


def hidden_finding(error: CannotJudgeError, root: Path, segment: int | None = None) -> Finding:
    """What could not be judged, as a finding."""
    inside = error.path.is_relative_to(root)
    file = error.path.relative_to(root).as_posix() if inside else str(error.path)
    what = f"it cannot be read: {error.why}"
    return finding(NOT_READABLE, file, what, segment=segment)


@dataclass(slots=True)
class SegmentCheck:
    """What the examination of one segment gave; picklable."""

    segment: int
    findings: list[Finding] = field(default_factory=list)
    episodes: int = 0
    steps: int = 0
    rows: int = 0
    bytes_read: int = 0
    live: bool = False
    """Whether a writer had it open."""
    lost_episodes: int = 0
    """Whole episodes behind those that the log has records of."""

    @property
    def damaged(self) -> bool:
        """Whether anything is an error."""
        return any(each.severity == "error" for each in self.findings)

    @property
    def suspect(self) -> bool:
        """Whether anything is an error or a warning."""
        return any(each.severity != "note" for each in self.findings)

    @property
    def hidden(self) -> bool:
        """Whether anything could not be read, and so not be judged."""
        return any(each.kind == NOT_READABLE for each in self.findings)


@dataclass(frozen=True)
class Report:
    """All that was found, segment by segment; what concerns no segment comes first."""

    path: Path
    findings: tuple[Finding, ...]
    segments: int
    live_segments: int
    """Segments that a writer had open meanwhile."""
    episodes: int
    """Good and damaged ones, without those that a repair took out."""
    steps: int
    bytes_read: int
    seconds: float

    @cached_property
    def errors(self) -> tuple[Finding, ...]:
        """Damage: something that was written is not there any more, or cannot be right."""
        return self._of("error")

    @cached_property
    def warnings(self) -> tuple[Finding, ...]:
        """Faults of caches and of metadata's claims; no episode is lost by them."""
        return self._of("warning")

    @cached_property
    def notes(self) -> tuple[Finding, ...]:
        """What lies about in the store and is no fault."""
        return self._of("note")

    @property
    def judged(self) -> bool:
        """Whether everything could be read that had to be."""
        return not any(each.kind == NOT_READABLE for each in self.findings)

    @property
    def damaged(self) -> bool:
        """Whether anything is known to be damaged."""
        return any(each.kind != NOT_READABLE for each in self.errors)

    @property
    def sound(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    def _of(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.severity == severity)

    def to_json(self) -> dict[str, Any]:
        """The whole report as JSON values."""
        return {
            "path": str(self.path),
            "sound": self.sound,
            "judged": self.judged,
            "errors": len(self.errors),
            "warnings": len(self.warnings),
            "notes": len(self.notes),
            "segments": self.segments,
            "live_segments": self.live_segments,
            "episodes": self.episodes,
            "steps": self.steps,
            "bytes_read": self.bytes_read,
            "seconds": self.seconds,
            "findings": [each.to_json() for each in self.findings],
        }
