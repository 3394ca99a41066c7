"""Repair a store: what is damaged goes to quarantine, everything else reads on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from storage.errors import CorruptStoreError, NotReadableError
from storage.repairing.actions import Action, RepairReport
from storage.repairing.claim import REPAIR_LOCK, only_repair, segments_held
from storage.repairing.plan import SegmentPlan
from storage.repairing.planning import Progress, plan_segments
from storage.repairing.segment_repair import mend_segment, move_overlays, set_segment_aside
from storage.repairing.store_repair import StorePlan, clear_locks, mend_store, plan_store
from storage.repairing.writable import require_writable
from storage.verification.findings import NOT_READABLE, Finding
from storage.verification.inventory import hidden_folders, segments_of
from storage.verification.overlays import check_overlays
from storage.verification.regular_files import CannotJudgeError
from storage.verification.store_facts import StoreFacts, examine_root

__all__ = ["repair"]

_ROUNDS = 4
"""A first one mends, a second one finds nothing; what a fault hid may take one more."""


def repair(
    path: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> RepairReport:
    """Move what is damaged in the store at ``path`` to ``quarantine/``, so that the rest reads on.

    Nothing is deleted: damaged rows, replaced logs and metadata are copied to quarantine before
    they change. May be killed anywhere and run again. A store without damage is not touched. With
    ``dry_run`` no byte changes, and the report says what would be done. What is found is looked at
    again under the locks of all segments concerned, and that second look decides.

    Raises StoreNotFoundError, FormatVersionError, SegmentLockedError while a live writer or another
    repair holds a damaged segment, OverlayInUseError while a view writes a damaged overlay,
    NotReadableError where nobody knows whether something is damaged, CorruptStoreError where
    neither copy of the root metadata is good, ReadOnlyStoreError: all before anything is changed;
    and DiskFullError.
    """
    root = Path(path).absolute()
    try:
        return _Repair(root, workers).run(dry_run, progress)
    except CannotJudgeError as error:
        raise _not_readable(root, str(error)) from error


class _Repair:
    def __init__(self, root: Path, workers: int | None) -> None:
        self._root = root
        self._workers = workers
        self._kept: list[str] = []
        self._actions: list[Action] = []

    def run(self, dry_run: bool, progress: Progress | None) -> RepairReport:
        """Look, and unless nothing is to be done, look again under locks and do it."""
        facts, store_plan = self._examine()
        plans = self._plan(facts, segments_of(facts.paths), progress)
        if dry_run or not (plans or store_plan):
            self._tell(store_plan, plans)
        else:
            require_writable(facts.paths, plans)
            self._clear(facts, [name for name in store_plan.locks if name == REPAIR_LOCK])
            with only_repair(facts.paths):
                self._actions += [each for each in store_plan.actions() if _is_lock(each)]
                self._clear(facts, [name for name in store_plan.locks if name != REPAIR_LOCK])
                self._carry_out(facts, plans)
        kept = tuple(dict.fromkeys(self._kept))
        return RepairReport(self._root, tuple(self._actions), dry_run, kept)

    def _clear(self, facts: StoreFacts, locks: list[str]) -> None:
        self._kept += clear_locks(facts.paths, locks)

    def _examine(self) -> tuple[StoreFacts, StorePlan]:
        """The root metadata and all that belongs to no segment, and what to do about it."""
        root = self._root
        files, found = examine_root(root)
        _require_judged(root, found)
        facts = files.good.facts if files.good else None
        if facts is None:
            raise CorruptStoreError(
                f"{root / 'steps.zarr' / 'zarr.json'} and its copy log/store.json are both damaged "
                f"({found[0].what}), and nothing else tells the columns: restore one from a backup,"
                " or from another store of the same environment and settings, with the store_uuid "
                "that the files in log name"
            )
        _require_judged(root, hidden_folders(facts.paths))
        _require_judged(root, check_overlays(facts))
        return facts, plan_store(facts, files)

    def _plan(
        self,
        facts: StoreFacts,
        segments: list[int],
        progress: Progress | None = None,
        *,
        locked: bool = False,
    ) -> list[SegmentPlan]:
        found, plans = plan_segments(facts, segments, self._workers, progress, locked=locked)
        _require_judged(self._root, found)
        return plans

    def _tell(self, store_plan: StorePlan, plans: list[SegmentPlan]) -> None:
        self._actions += store_plan.actions()
        self._actions += [action for plan in plans for action in plan.actions()]

    def _carry_out(self, facts: StoreFacts, plans: list[SegmentPlan]) -> None:
        for number in range(_ROUNDS):
            store_plan, done = self._round(facts, plans)
            if number == 0:
                self._tell(store_plan, done)
            plans = self._plan(facts, [plan.segment for plan in plans])
            if not plans:
                return
        raise CorruptStoreError(f"{self._root} is still damaged after a repair: {plans[0].why[0]}")

    def _round(
        self, facts: StoreFacts, plans: list[SegmentPlan]
    ) -> tuple[StorePlan, list[SegmentPlan]]:
        """Do what is still to be done once nobody else can change it; gives what that was."""
        with segments_held(facts.paths, plans) as overlays:
            now, store_plan = self._examine()
            if now.uuid != facts.uuid:
                raise CorruptStoreError(f"{self._root} was replaced meanwhile; repair it again")
            segments = [plan.segment for plan in plans]
            plans = [_within(plan, overlays) for plan in self._plan(facts, segments, locked=True)]
            require_writable(facts.paths, plans)
            self._kept += mend_store(facts, store_plan)
            for plan in plans:
                for step in _steps(plan):
                    folder = step(facts, plan)
                    if folder is not None:
                        self._kept.append(folder.relative_to(self._root).as_posix())
        return store_plan, plans


def _is_lock(action: Action) -> bool:
    return action.kind == "clear-lock"


def _within(plan: SegmentPlan, overlays: frozenset[str]) -> SegmentPlan:
    """The plan without overlays whose locks are not held: the next round takes them up."""
    return replace(plan, overlays=tuple(name for name in plan.overlays if name in overlays))


def _require_judged(root: Path, found: Iterable[Finding]) -> None:
    hidden = [each for each in found if each.kind == NOT_READABLE]
    if hidden:
        more = f", and {len(hidden) - 1:,} more" * (len(hidden) > 1)
        raise _not_readable(root, f"{hidden[0].file}: {hidden[0].what}{more}")


def _not_readable(root: Path, what: str) -> NotReadableError:
    return NotReadableError(
        f"cannot repair {root}, for nobody knows whether what cannot be read is damaged ({what}). "
        "Repair as the owner of the files, or lift the limit that was named"
    )


def _steps(plan: SegmentPlan) -> Iterator[Callable[[StoreFacts, SegmentPlan], Path | None]]:
    if plan.set_aside:
        yield set_segment_aside
        return
    if plan.mends:
        yield mend_segment
    if plan.overlays:
        yield move_overlays
