"""`sharpwave inspect STORE`: what a store holds, for people or as JSON."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.nearest import nearest
from pipeline.parser import VerbParser, natural
from pipeline.quoting import quote
from storage.errors import StoreNotFoundError

if TYPE_CHECKING:
    from pipeline.stored_run import StoredRun

__all__ = ["main", "show_store"]

_STORES_NAMED: Final = 3
"""Of a folder that holds several."""


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    parser = VerbParser("inspect", "Says what a store holds, also while it is being written.")
    parser.add_argument("store", metavar="STORE", type=Path, help="a store, or a run's folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument(
        "--top",
        type=natural,
        default=10,
        metavar="N",
        help="steps of the largest priority to list, where replay is prioritized (default 10)",
    )
    parser.add_argument(
        "--alpha",
        type=_unit,
        metavar="X",
        help="exponent of their sampling probabilities (default: the run's, or 0.6 without one)",
    )
    settings = parser.parse(arguments)
    show_store(settings.store, as_json=settings.json, top=settings.top, alpha=settings.alpha)
    return 0


def show_store(
    path: Path, *, as_json: bool = False, top: int = 10, alpha: float | None = None
) -> None:
    """Prints the summary of the store at `path`, or of the one of the run in the folder `path`.

    What the store lacks is told by the summary alone, not by warnings, too.
    """
    import storage
    from pipeline.summary import summarize

    if not path.exists():
        hint = nearest(path.name, [each.name for each in path.parent.glob("*/")])
        raise StoreNotFoundError(
            f"there is no store {path}{hint}; give the folder that holds steps.zarr, or a run's"
        )
    inside = path / "store" if (path / "store").is_dir() else path
    with _without_warnings():
        learner = _learner(path)
        if learner is None:
            _refuse_folder_of_stores(inside)
        store = storage.open(inside if learner is None else learner.store or inside)
    try:
        summary = summarize(store, learner, top=top, alpha=alpha)
    finally:
        store.close()
    if as_json:
        print(json.dumps(summary.to_json(), indent=2))
        return
    from rich.console import Console

    from pipeline.summary_table import print_summary

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = None if known else 100
    print_summary(summary, Console(width=width, soft_wrap=False))


def _learner(path: Path) -> StoredRun | None:
    """The run in the folder `path`, if it learns from a store that is not its own."""
    from pipeline.stored_run import StoredRun

    run = None if (path / "store").is_dir() else StoredRun.at(path)
    return run if run is not None and run.folder == path and run.store is not None else None


def _refuse_folder_of_stores(path: Path) -> None:
    """Raises where stores lie inside `path`, which is none, as a study's memories do."""
    if (path / "steps.zarr").exists():
        return
    found = [each.parent for depth in ("*", "*/*") for each in path.glob(f"{depth}/steps.zarr")]
    if found:
        stores = [quote(each) for each in sorted(found)]
        listed = ", ".join([*stores[:_STORES_NAMED], *["…"] * (len(stores) > _STORES_NAMED)])
        raise StoreNotFoundError(
            f"{path} is no store, but holds {len(stores)}: {listed}; give one of them, as "
            f"`sharpwave inspect {stores[-1]}`"
        )


def _unit(text: str) -> float:
    """A number in [0, 1], for `type=`."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"{number} must lie in [0, 1]")
    return number


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keeps what `storage` logs below errors to itself."""
    logger = logging.getLogger("storage")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
