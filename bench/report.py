"""Prints what was measured as a table: `python -m bench.report [FILE] [--compare OLD]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench.arguments import Arguments
from bench.comparison import compare_with
from bench.results import FOLDER, BenchError, Line, newest, read, runs

__all__ = ["markdown", "verdict"]


def markdown(lines: Sequence[Line]) -> str:
    """A Markdown table of all figures that are no points of a cost curve; those are for plots."""
    shown = [_row(line) for line in lines if "curve" not in line]
    if not shown:
        return "cost curves only: see the plots"
    head = ["| figure | measured | limit | | ratio | target |", "|---|---|---|---|---|---|"]
    return "\n".join(head + shown)


def verdict(line: Line) -> str:
    """The target and whether the ratio meets it; empty where nothing was promised."""
    target = line.get("target")
    if target is None:
        return ""
    return f"≤ {target:.3g}{'' if line['ratio'] <= target else ', missed'}"


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
