"""Repair a store: what is damaged goes to quarantine, everything else reads on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from storage.errors import CorruptStoreError, ReadOnlyStoreError, SegmentLockedError
from storage.layout import segment_name
from storage.lock import SegmentLock
from storage.overlay_lock import OverlayLock
from storage.repairing.actions import RepairReport
from storage.repairing.bit_correction import corrected_log
from storage.repairing.plan import SegmentPlan, needs_log, plan_segment
from storage.repairing.segment_repair import mend_segment, move_overlays, set_segment_aside
from storage.repairing.store_repair import mend_store, plan_store
from storage.verification.findings import SegmentCheck
from storage.verification.inventory import segments_of
from storage.verification.regular_files import read_file
from storage.verification.segment import check_segment
from storage.verification.store_facts import StoreFacts, examine_root
from storage.verification.verify import check_segments

__all__ = ["repair"]

_ROUNDS = 4
"""A first one mends, a second one finds nothing; what a fault hid may take one more."""


def repair(
    path: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> RepairReport:
    """Move what is damaged in the store at ``path`` to ``quarantine/``, so that the rest reads on.

    Nothing is deleted: damaged rows, replaced logs and metadata are copied to quarantine before
    they change. May be killed anywhere and run again. A store without damage is not touched. With
    ``dry_run`` no byte changes, and the report says what would be done.

    Raises StoreNotFoundError, FormatVersionError, SegmentLockedError while a live writer holds a
    damaged segment, OverlayInUseError while a view writes a damaged overlay, CorruptStoreError
    where neither copy of the root metadata is good, ReadOnlyStoreError, DiskFullError.
    """
    root = Path(path).absolute()
    files, found = examine_root(root)
    facts = files.good.facts if files.good else None
    if facts is None:
        raise CorruptStoreError(
            f"{root / 'steps.zarr' / 'zarr.json'} and its copy log/store.json are both damaged "
            f"({found[0].what}), and nothing else tells the columns: restore one from a backup, or "
            "from another store of the same environment and settings, with the store_uuid that "
            "the files in log name"
        )
    store_plan = plan_store(facts, files)
    segments = segments_of(facts.paths)
    plans = _plans(facts, segments, workers, progress)
    actions = [*store_plan.actions(), *(each for plan in plans for each in plan.actions())]
    kept: list[str] = []
    if actions and not dry_run:
        _require_writable(facts)
        kept += mend_store(facts, store_plan)
        for _ in range(_ROUNDS):
            if not plans:
                break
            kept += _carry_out(facts, plans)
            plans = _plans(facts, [plan.segment for plan in plans], workers, None)
        if plans:
            raise CorruptStoreError(f"{root} is still damaged after a repair: {plans[0].why[0]}")
    return RepairReport(root, tuple(actions), dry_run, tuple(dict.fromkeys(kept)))


def _plans(
    facts: StoreFacts,
    segments: list[int],
    workers: int | None,
    progress: Callable[[int, int], object] | None,
) -> list[SegmentPlan]:
    """What to do about each segment that something is to be done about."""
    checks = check_segments(facts, segments, workers, progress=progress)
    return [plan for check in checks if (plan := _plan(facts, check)) is not None]


def _plan(facts: StoreFacts, check: SegmentCheck) -> SegmentPlan | None:
    newer = [each for each in check.findings if each.kind == "log-version"]
    if newer:
        raise CorruptStoreError(newer[0].what)
    if not check.live:
        corrected = _corrected(facts, check.segment) if needs_log(check) else None
        if corrected is None:
            return plan_segment(check)
        better = check_segment(facts, check.segment, log=corrected)
        return plan_segment(better, corrected, also=check.findings)
    if check.damaged:
        raise SegmentLockedError(
            f"a live writer holds segment {segment_name(check.segment)} of {facts.paths.root}, "
            f"which is damaged ({next(e for e in check.findings if e.severity == 'error')}). Stop "
            "the writer, then repair; nothing was changed"
        )
    return None


def _corrected(facts: StoreFacts, segment: int) -> bytes | None:
    """The segment's log with flipped bits turned back; None where there are none such."""
    path = facts.paths.log(segment)
    try:
        data = read_file(path)
    except OSError:
        return None
    corrected = corrected_log(data, path)
    return None if corrected == data else corrected


def _require_writable(facts: StoreFacts) -> None:
    paths = facts.paths
    try:
        for folder in paths.folders():
            folder.mkdir(exist_ok=True)
        denied = [folder for folder in paths.folders() if not os.access(folder, os.W_OK)]
    except OSError:
        denied = [paths.root]
    if denied or os.statvfs(paths.root).f_flag & os.ST_RDONLY:
        raise ReadOnlyStoreError(
            f"cannot repair {paths.root}, for it cannot be written; copy it to where it can be"
        )


def _carry_out(facts: StoreFacts, plans: list[SegmentPlan]) -> list[str]:
    """Do what is planned, holding the locks of all segments concerned."""
    kept = []
    with _locked(facts, plans):
        for plan in plans:
            for step in _steps(plan):
                folder = step(facts, plan)
                if folder is not None:
                    kept.append(folder.relative_to(facts.paths.root).as_posix())
    return kept


def _steps(plan: SegmentPlan) -> Iterator[Callable[[StoreFacts, SegmentPlan], Path | None]]:
    if plan.set_aside:
        yield set_segment_aside
        return
    if plan.mends:
        yield mend_segment
    if plan.overlays:
        yield move_overlays


@contextmanager
def _locked(facts: StoreFacts, plans: list[SegmentPlan]) -> Iterator[None]:
    """Hold the locks of segments and overlays; raises where somebody does, nothing changed."""
    with ExitStack() as stack:
        for plan in plans:
            lock = SegmentLock.acquire(facts.paths, plan.segment)
            stack.callback(lock.release)
        for name in sorted({name for plan in plans for name in plan.overlays}):
            overlay = OverlayLock(facts.paths.overlays / f"{name}.lock")
            stack.callback(overlay.release)
        yield
