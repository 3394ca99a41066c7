"""Look at segments, and plan what is to be done about each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from storage.errors import CorruptStoreError, SegmentLockedError
from storage.layout import segment_name
from storage.repairing.bit_correction import corrected_log
from storage.repairing.plan import SegmentPlan, needs_log, plan_segment
from storage.repairing.told_episodes import told_episodes
from storage.verification.findings import Finding, SegmentCheck
from storage.verification.raw_log import read_log_bytes
from storage.verification.segment import check_segment
from storage.verification.store_facts import StoreFacts
from storage.verification.verify import check_segments

__all__ = ["Progress", "plan_segments"]

Progress = Callable[[int, int], object]


def plan_segments(
    facts: StoreFacts,
    segments: list[int],
    workers: int | None,
    progress: Progress | None,
    *,
    locked: bool,
) -> tuple[list[Finding], list[SegmentPlan]]:
    """What could not be judged, or else what to do about each segment that needs it.

    ``locked`` says that the caller holds the segments' locks.
    """
    checks = check_segments(facts, segments, workers, progress=progress, locked=locked)
    if any(check.hidden for check in checks):
        return [each for check in checks for each in check.findings], []
    plans = (_plan(facts, check, locked) for check in checks)
    return [], [plan for plan in plans if plan is not None]


def _plan(facts: StoreFacts, check: SegmentCheck, locked: bool) -> SegmentPlan | None:
    newer = [each for each in check.findings if each.kind == "log-version"]
    if newer:
        raise CorruptStoreError(newer[0].what)
    if not check.live:
        return _with_count(facts, check, _plan_free(facts, check, locked))
    if check.damaged:
        raise SegmentLockedError(
            f"a live writer holds segment {segment_name(check.segment)} of {facts.paths.root}, "
            f"which is damaged ({next(e for e in check.findings if e.severity == 'error')}). Stop "
            "the writer, then repair; nothing was changed"
        )
    return None


def _plan_free(facts: StoreFacts, check: SegmentCheck, locked: bool) -> SegmentPlan | None:
    """The plan for a segment that nobody else writes."""
    corrected = _corrected(facts, check.segment) if needs_log(check) else None
    if corrected is None:
        return plan_segment(check)
    better = check_segment(facts, check.segment, log=corrected, locked=locked)
    return plan_segment(better, corrected, also=check.findings)


def _with_count(
    facts: StoreFacts, check: SegmentCheck, plan: SegmentPlan | None
) -> SegmentPlan | None:
    """The plan, with the episodes of a segment that goes though its log does not tell them."""
    if plan is None or not plan.set_aside or plan.episodes:
        return plan
    return replace(plan, episodes=told_episodes(facts, check.segment))


def _corrected(facts: StoreFacts, segment: int) -> bytes | None:
    """The segment's log with flipped bits turned back; None where there are none such."""
    path = facts.paths.log(segment)
    try:
        data, _ = read_log_bytes(path)
    except OSError:
        return None
    corrected = corrected_log(data, path)
    return None if corrected == data else corrected
