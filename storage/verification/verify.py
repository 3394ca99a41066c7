"""Verify a store: read every byte that counts, and say what is wrong with it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

from storage.errors import ConfigError
from storage.verification.findings import Finding, Report, SegmentCheck
from storage.verification.inventory import hidden_folders, segments_of, strays
from storage.verification.overlays import check_overlays
from storage.verification.segment import check_segment
from storage.verification.store_facts import StoreFacts, examine_root

__all__ = ["check_segments", "verify"]


def verify(
    path: str | os.PathLike[str],
    *,
    workers: int | None = None,
    overlays: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Examine the store at ``path`` and report everything that is wrong with it.

    Changes no byte, and may run while writers are at work: what they are in the midst of is left
    out. Every segment is examined on its own, so that one that is broken hides no other. Rows are
    read in blocks of a few MiB, on ``workers`` threads (default: one a core; the checksums and
    comparisons run outside Python's lock). ``progress`` is told (segments done, segments).

    What may not be read, or cannot be for want of descriptors or memory, is not judged: a finding
    "not-readable" says so, and ``report.judged`` is False.

    Raises StoreNotFoundError, or FormatVersionError for a newer store; damage is in the report.
    """
    if workers is not None and (type(workers) is not int or workers < 1):
        raise ConfigError(f"workers={workers!r}: give a whole number from 1")
    began = time.monotonic()
    root = Path(path).absolute()
    files, found = examine_root(root)
    facts = files.good.facts if files.good else None
    if facts is None:
        return Report(root, tuple(found), 0, 0, 0, 0, 0, time.monotonic() - began)
    found += hidden_folders(facts.paths)
    found += strays(facts.paths)
    if overlays:
        found += check_overlays(facts)
    segments = segments_of(facts.paths)
    checks = check_segments(facts, segments, workers, overlays=overlays, progress=progress)
    return _report(root, found, checks, time.monotonic() - began)


def check_segments(
    facts: StoreFacts,
    segments: Iterable[int],
    workers: int | None = None,
    *,
    overlays: bool = True,
    progress: Callable[[int, int], object] | None = None,
    locked: bool = False,
) -> list[SegmentCheck]:
    """Examine segments in parallel; in the order given. ``locked``: the caller has their locks."""
    from dask.base import compute
    from dask.delayed import delayed

    wanted = list(segments)
    done = 0

    def examine(segment: int) -> SegmentCheck:
        nonlocal done
        check = check_segment(facts, segment, overlays=overlays, locked=locked)
        done += 1
        if progress is not None:
            progress(done, len(wanted))
        return check

    tasks = [delayed(examine)(segment, dask_key_name=f"segment-{segment}") for segment in wanted]
    count = workers or os.cpu_count() or 1
    results = compute(*tasks, scheduler="threads", num_workers=count)  # type: ignore[no-untyped-call]
    return list(results)


def _report(root: Path, found: list[Finding], checks: list[SegmentCheck], seconds: float) -> Report:
    return Report(
        path=root,
        findings=tuple(chain(found, *(check.findings for check in checks))),
        segments=len(checks),
        live_segments=sum(check.live for check in checks),
        episodes=sum(check.episodes for check in checks),
        steps=sum(check.steps for check in checks),
        bytes_read=sum(check.bytes_read for check in checks),
        seconds=seconds,
    )
