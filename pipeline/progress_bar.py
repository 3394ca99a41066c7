"""How far work of a known size is: a bar on terminals, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipeline.streams import complain

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(
    total: int, unit: str = "", *, interval: float = 30.0
) -> Iterator[Callable[[int], None]]:
    """A function that shows how much is done, on stderr.

    A bar where that is a terminal, elsewhere a line every ``interval`` seconds, if ``unit`` says
    what is counted.
    """
    if not sys.stderr.isatty():
        yield _lines(total, unit, interval) if unit else lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (MofNCompleteColumn(), BarColumn(bar_width=None), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, completed=done)


def _lines(total: int, unit: str, interval: float) -> Callable[[int], None]:
    began = shown = time.monotonic()

    def show(done: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < interval:
            return
        shown = now
        speed = done / max(now - began, 1e-9)
        share = f"{done:,} of {total:,} {unit} ({100 * done / total:.0f} %)"
        complain(f"{share}  {speed:,.0f} {unit}/s  {(total - done) / max(speed, 1e-9):,.0f} s left")

    return show
