"""`sharpwave repair STORE`: moves what is damaged to quarantine, so that the rest reads on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.parser import VerbParser
from pipeline.quoting import quote
from pipeline.verify import add_workers, counted, segment_progress, store_in

if TYPE_CHECKING:
    from storage import RepairReport

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    parser = VerbParser(
        "repair",
        "Moves what is damaged in a store to its folder quarantine, so that everything else reads "
        "on. Deletes nothing, and may be stopped and run again.",
    )
    parser.add_argument("store", metavar="STORE", type=Path, help="a store, or a run's folder")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_workers(parser)
    settings = parser.parse(arguments)
    import storage

    path = store_in(settings.store)
    with segment_progress() as progress:
        report = storage.repair(
            path, dry_run=settings.dry_run, workers=settings.workers, progress=progress
        )
    if settings.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        print("\n".join(_lines(report)))
    if report.episodes_lost or report.segments_of_unknown_length:
        _warn_of_checkpoints(report)
    return 0


def _warn_of_checkpoints(report: RepairReport) -> None:
    """A run whose own store this is may not resume: its checkpoints name what they drew from."""
    run = report.path.parent
    if next(run.glob("checkpoints/*.ckpt"), None) is None:
        return
    taken = "would be" if report.dry_run else "were"
    print(
        f"warning: checkpoints of {run} may name episodes that {taken} taken out: the run may then "
        f"not resume; learn from what is left by `sharpwave train --offline {quote(report.path)} "
        "--name=NAME`",
        file=sys.stderr,
    )


def _lines(report: RepairReport) -> Iterator[str]:
    if not report.actions:
        yield f"{report.path}: nothing to repair"
        return
    for action in report.actions:
        yield str(action)
    lost = ", ".join(_losses(report))
    if report.dry_run:
        yield f"{lost} by `sharpwave repair {quote(report.path)}`; nothing was changed"
        return
    kept = f"; old bytes are in {', '.join(report.quarantined)}" if report.quarantined else ""
    yield f"{lost}{kept}"


def _losses(report: RepairReport) -> Iterator[str]:
    aside, unknown = report.episodes_set_aside, report.segments_of_unknown_length
    taken_out = report.episodes_lost - aside
    would = "would be " if report.dry_run else ""
    if taken_out or not (aside or unknown):
        yield f"{counted(taken_out, 'episode')} {would}taken out"
    if aside:
        yield f"{counted(aside, 'episode')} {would}set aside"
    if unknown:
        yield f"nobody knows how many episodes of {counted(unknown, 'segment')} {would}set aside"
