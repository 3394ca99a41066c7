"""`sharpwave migrate STORE`: bring a store of an older format version up to date."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.parser import VerbParser
from storage.layout import FORMAT_VERSION
from storage.migration import migrate

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    parser = VerbParser(
        "migrate",
        "Brings a store to the format version of this release. The old store is kept beside it, "
        "and shares the column files with it.",
    )
    parser.add_argument("store", metavar="STORE", type=Path, help="a store")
    store = parser.parse(arguments).store
    kept = migrate(store)
    if kept is None:
        print(f"{store} is of format version {FORMAT_VERSION} already; nothing to do")
    else:
        print(f"{store} is of format version {FORMAT_VERSION} now; the old one is {kept}")
    return 0
