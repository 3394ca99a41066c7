"""`sharpwave repair STORE`: moves what is damaged to quarantine, so that the rest reads on."""

from __future__ import annotations

import json
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
    return 0


def _lines(report: RepairReport) -> Iterator[str]:
    if not report.actions:
        yield f"{report.path}: nothing to repair"
        return
    for action in report.actions:
        yield str(action)
    lost = f"{counted(report.episodes_lost, 'episode')} taken out"
    if report.dry_run:
        yield f"{lost}, if you run `sharpwave repair {quote(report.path)}`; nothing was changed"
        return
    kept = f"; old bytes are in {', '.join(report.quarantined)}" if report.quarantined else ""
    yield f"{lost}{kept}"
