"""`sharpwave verify STORE`: reads every byte that counts and says what is damaged."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.nearest import nearest
from pipeline.parser import VerbParser, positive
from pipeline.progress_bar import progress_bar
from pipeline.quoting import quote
from pipeline.summary_table import byte_text
from storage.errors import StoreNotFoundError

if TYPE_CHECKING:
    from storage import Finding, Report

__all__ = ["add_workers", "counted", "main", "segment_progress", "store_in"]

_SHOWN: Final = 5
"""Findings of one kind that are told of a segment; `--json` tells all."""


def main(arguments: Sequence[str]) -> int:
    """Runs the verb; 1 where something is damaged."""
    parser = VerbParser(
        "verify",
        "Reads every byte of a store that counts and says what is damaged, also while it is being "
        "written. Changes nothing. Exit code 0: sound, 1: damaged, 2: no store there, or parts of "
        "it cannot be read and nothing else is damaged.",
    )
    parser.add_argument("store", metavar="STORE", type=Path, help="a store, or a run's folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_workers(parser)
    parser.add_argument("--no-overlays", action="store_true", help="leave the runs' caches out")
    settings = parser.parse(arguments)
    import storage

    path = store_in(settings.store)
    with segment_progress() as progress:
        report = storage.verify(
            path,
            workers=settings.workers,
            overlays=not settings.no_overlays,
            progress=progress,
        )
    if settings.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        print("\n".join(_lines(report)))
    return 0 if report.sound else 1 if report.damaged else 2


def add_workers(parser: argparse.ArgumentParser) -> None:
    """The option --workers."""
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="segments that are read at the same time (default: one a core)",
    )


def store_in(path: Path) -> Path:
    """The store at `path`, or the one of the run in the folder `path`."""
    if not path.exists():
        hint = nearest(path.name, [each.name for each in path.parent.glob("*/")])
        raise StoreNotFoundError(
            f"there is no store {path}{hint}; give the folder that holds steps.zarr, or a run's"
        )
    return path / "store" if (path / "store").is_dir() else path


@contextmanager
def segment_progress() -> Iterator[Callable[[int, int], object]]:
    """A function for `progress=` that shows a bar from its first call on, on terminals."""
    with ExitStack() as stack:
        shown: list[Callable[[int], None]] = []

        def show(done: int, total: int) -> None:
            if not shown:
                shown.append(stack.enter_context(progress_bar(total)))
            shown[0](done)

        yield show


def counted(number: int, noun: str) -> str:
    """`3 segments`, `1 segment`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _lines(report: Report) -> Iterator[str]:
    grouped: dict[tuple[str, int, str], list[Finding]] = defaultdict(list)
    order = {"error": 0, "warning": 1, "note": 2}
    for each in report.findings:
        segment = -1 if each.segment is None else each.segment
        grouped[each.severity, segment, each.kind].append(each)
    told: set[str] = set()
    for key in sorted(grouped, key=lambda key: (order[key[0]], *key[1:])):
        yield from _group(grouped[key], told)
    yield _summary(report)


def _group(found: list[Finding], told: set[str]) -> Iterator[str]:
    """One kind of finding in one segment; its remedy when it comes for the first time."""
    for each in found[:_SHOWN]:
        yield f"{each.severity}: {each.file}: {each.what} [{each.kind}]"
    if len(found) > _SHOWN:
        yield f"  … and {counted(len(found) - _SHOWN, 'more file')} likewise (--json lists all)"
    if found[0].severity != "note" and found[0].kind not in told:
        told.add(found[0].kind)
        yield f"  {found[0].remedy}"


def _summary(report: Report) -> str:
    sizes = [
        counted(report.segments, "segment"),
        counted(report.episodes, "episode"),
        counted(report.steps, "step"),
    ]
    checked = f"{', '.join(sizes)}: {byte_text(report.bytes_read)} in {report.seconds:.1f} s"
    if report.live_segments:
        checked += f"; {counted(report.live_segments, 'segment')} being written"
    faults = [("error", report.errors), ("warning", report.warnings), ("note", report.notes)]
    counts = ", ".join(counted(len(found), name) for name, found in faults if found)
    if report.sound:
        return f"{checked}; sound{f' ({counts})' if counts else ''}"
    if not report.judged:
        state = "damaged, and not all could be judged" if report.damaged else "not all was judged"
        return f"{checked}; {state} ({counts})"
    command = f"`sharpwave repair {quote(report.path)} --dry-run`"
    return f"{checked}; damaged ({counts}); {command} tells what a repair would do"
