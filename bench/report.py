"""Prints what was measured as a table: `python -m bench.report [FILE] [--compare OLD]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.arguments import Arguments
from bench.comparison import compare_with
from bench.results import FOLDER, BenchError, Line, newest, read, runs
from bench.tables import tables_of

__all__ = ["markdown", "verdict"]

_EXPLANATION: Final = (
    "Medians; ratio: how many times the limit's cost, with quartiles in brackets. "
    "1 is the limit itself, larger is slower, for rates too."
)
_HEAD: Final = "| figure | measured | limit | | ratio | target |\n|---|---|---|---|---|---|"


def markdown(lines: Sequence[Line]) -> str:
    """Markdown tables of all figures that are no points of a cost curve; those are for plots."""
    rows = [_row(line) for line in lines if "curve" not in line and "table" not in line]
    parts = [f"{_EXPLANATION}\n\n{_HEAD}\n" + "\n".join(rows)] if rows else []
    parts += tables_of(lines)
    return "\n\n".join(parts) or "cost curves only: see the plots"


def verdict(line: Line) -> str:
    """What was promised, of the ratio or of the measured value, and whether it is kept."""
    promises = (("target", line["ratio"], ""), ("most", line["value"], f" {line['unit']}"))
    texts = [
        f"≤ {line[key]:.3g}{unit}{'' if got <= line[key] else ', missed'}"
        for key, got, unit in promises
        if line.get(key) is not None
    ]
    return "; ".join(texts)


def _row(line: Line) -> str:
    unit = line["unit"]
    measured, limit = (f"{line[key]:,.4g} {unit}" for key in ("value", "limit"))
    spread = f"({line['ratio_p25']:.3g}–{line['ratio_p75']:.3g})"
    ratio = f"{line['ratio']:.3g} {spread}"
    cells = (line["name"], measured, limit, line["limit_name"], ratio, verdict(line))
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def main(words: list[str]) -> int:
    parser = Arguments("bench.report", __doc__)
    parser.add_argument("file", nargs="?", type=Path, default=FOLDER / "results.jsonl")
    parser.add_argument("--compare", metavar="OLD", help="an earlier results.jsonl, or a revision")
    given = parser.parse_args(words)
    try:
        lines = read(given.file)
        if given.compare is None:
            print(markdown(newest(lines)))
            return 0
        return compare_with(given.compare, list(runs(lines).values())[-1], given.file)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
