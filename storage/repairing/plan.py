"""What has to be done to one segment, from what was found in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from storage.layout import segment_name
from storage.repairing.actions import Action
from storage.verification.findings import Finding, SegmentCheck

__all__ = ["SegmentPlan", "needs_log", "plan_segment"]

_HOPELESS = frozenset(
    {"log-unreadable", "log-foreign", "segment-without-log", "log-without-segment"}
)
_LOG = frozenset({"log-record", "log-order", "log-too-long", "torn-tail"})
_FILES = frozenset({"missing-column", "short-column", "unreadable-column"})
_DERIVED = frozenset(
    {"shard-index", "group-metadata", "array-metadata", "episode-table", "open-note", "void-rows"}
)
_LOST = frozenset({"lost-records"})


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """The faults of one segment, arranged by what is done about them."""

    segment: int
    set_aside: bool
    """Whether all of it is moved to quarantine."""
    damaged: frozenset[int] = frozenset()
    """Ordinals of the episodes that are taken out."""
    kinds: frozenset[str] = frozenset()
    """Kinds of faults that something is done about."""
    files: tuple[str, ...] = ()
    """Files that are derived again, relative to the store."""
    overlays: tuple[str, ...] = ()
    """Overlays whose folder of the segment is moved to quarantine."""
    corrected: bytes | None = field(default=None, repr=False)
    """The log with its flipped bits put right, which is what is mended then."""
    why: tuple[str, ...] = field(default=(), compare=False)
    episodes: int | None = None
    """Episodes that the segment has; None where nobody knows."""
    lost_rows: tuple[int, int] | None = None
    """Rows [first, end) behind the log's whose records it has no more; they are set aside."""
    lost_episodes: int = 0
    """Whole episodes among them."""

    @property
    def rewrites_log(self) -> bool:
        """Whether the log changes."""
        return bool(self.damaged or self.kinds & _LOG or self.corrected is not None)

    @property
    def mends(self) -> bool:
        """Whether anything but overlays is mended in place."""
        return bool(self.damaged or self.kinds or self.corrected is not None)

    def actions(self) -> list[Action]:
        """The plan in words."""
        if self.set_aside:
            what = f"move all of it to quarantine/{segment_name(self.segment)}.*"
            what += f" ({self._episode_words()})"
            ordinals = tuple(sorted(self.damaged))
            return [Action("set-aside", self.segment, what, ordinals, episodes=self.episodes)]
        told = []
        if self.corrected is not None:
            what = "turn flipped bits of its log back, as the checksums there tell"
            told.append(Action("correct-log", self.segment, what))
        if self.damaged or self.kinds & {"log-record", "log-order"}:
            ordinals, what = tuple(sorted(self.damaged)), self._void_words()
            told.append(Action("void", self.segment, what, ordinals, episodes=len(ordinals)))
        if self.lost_rows is not None:
            first, end = self.lost_rows
            what = f"set rows {first:,} to {end:,} aside, of {self._lost_words()} without a record"
            told.append(Action("keep-rows", self.segment, what, episodes=self.lost_episodes))
        if "torn-tail" in self.kinds:
            told.append(Action("cut-tail", self.segment, "cut the unfinished record off its log"))
        if "log-too-long" in self.kinds:
            told.append(Action("cut-tail", self.segment, "cut off its log what none can hold"))
        if self.files:
            count = f"{len(self.files)} file{'s' * (len(self.files) > 1)}"
            what = f"derive {count} again: {', '.join(self.files[:3])}"
            what += ", …" * (len(self.files) > 3)
            told.append(Action("derive", self.segment, what, files=self.files))
        if "void-rows" in self.kinds:
            what = "mark the rows of taken-out episodes as never written again"
            told.append(Action("derive", self.segment, what))
        for name in self.overlays:
            what = f"move what overlay {name} has of it to quarantine/"
            told.append(Action("drop-overlay", self.segment, what))
        return told

    def _lost_words(self) -> str:
        count = self.lost_episodes
        return f"{count:,} whole episode{'s' * (count != 1)}"

    def _episode_words(self) -> str:
        if self.episodes is None:
            return "nobody knows how many episodes"
        return f"{self.episodes:,} episode{'s' * (self.episodes != 1)}"

    def _void_words(self) -> str:
        parts = []
        if self.damaged:
            shown = ", ".join(str(ordinal) for ordinal in sorted(self.damaged)[:5])
            more = ", …" * (len(self.damaged) > 5)
            count = f"{len(self.damaged):,} damaged episode{'s' * (len(self.damaged) > 1)}"
            if len(self.damaged) == self.episodes and self.episodes > 1:
                parts.append(f"take all {self.episodes:,} episodes out")
            else:
                parts.append(f"take {count} out ({shown}{more})")
        if self.kinds & {"log-record", "log-order"}:
            parts.append("take out episodes whose record is lost")
        return ", and ".join(parts)


def needs_log(check: SegmentCheck) -> bool:
    """Whether the log itself is damaged."""
    return bool({each.kind for each in check.findings} & (_LOG | {"log-unreadable"}))


def plan_segment(
    check: SegmentCheck, corrected: bytes | None = None, also: Iterable[Finding] = ()
) -> SegmentPlan | None:
    """What to do about a segment; None where nothing is to be done.

    ``corrected`` is the log's content that the check was made with, if not that of its file;
    ``also`` are findings of its file, which are told in the note as well.
    """
    found = check.findings
    told = (str(each) for each in (*also, *found) if each.severity != "note")
    why = tuple(dict.fromkeys(told))
    kinds = {each.kind for each in found}
    damaged = frozenset(
        ordinal for each in found if each.severity == "error" for ordinal in each.ordinals
    )
    if kinds & _HOPELESS or _is_spent(check, damaged, kinds):
        return SegmentPlan(check.segment, True, damaged, why=why, episodes=check.episodes)
    handled = kinds & (_LOG | _FILES | _DERIVED | _LOST)
    overlays = _overlays(found)
    if not (damaged or handled or overlays or corrected is not None):
        return None
    derived = [each.file for each in found if each.kind in _DERIVED and each.kind != "void-rows"]
    return SegmentPlan(
        segment=check.segment,
        set_aside=False,
        damaged=damaged,
        kinds=frozenset(handled),
        files=tuple(dict.fromkeys(derived)),
        overlays=overlays,
        corrected=corrected,
        why=why,
        episodes=check.episodes,
        lost_rows=next((each.rows for each in found if each.kind in _LOST), None),
        lost_episodes=check.lost_episodes,
    )


def _is_spent(check: SegmentCheck, damaged: frozenset[int], kinds: set[str]) -> bool:
    """Whether no good episode is left, nor one that the next writer could salvage."""
    left = kinds & {"open-episode", "lost-records"}
    return bool(damaged) and len(damaged) == check.episodes and not left


def _overlays(found: Iterable[Finding]) -> tuple[str, ...]:
    """The overlays that have something wrong in the segment, by name."""
    files = (each.file for each in found if each.kind == "overlay-segment")
    return tuple(dict.fromkeys(file.split("/")[1].removesuffix(".zarr") for file in files))
