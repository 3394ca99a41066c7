"""Runs the benchmarks whose names are given, or all of them."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.arguments import Arguments
from bench.circumstances import circumstances
from bench.comparison import earlier_run, print_comparison
from bench.effort import FULL, QUICK, Effort
from bench.figure import Figure
from bench.plots import draw
from bench.report import markdown
from bench.results import FOLDER, BenchError, Line, append, check_folder

NAMES: Final = (
    "appending",
    "sampling",
    "priorities",
    "acting",
    "updating",
    "collecting",
    "durability",
    "opening",
    "looping",
    "parts",
    "framework",
    "recording",
    "buffers",
    "frames",
    "peer_loops",
)
CURVES: Final = ("update_curve", "window_curve", "lane_curve")
"""Cost curves: measured by default in a whole run only."""
BUSY: Final = 0.7


def main(words: list[str], efforts: tuple[Effort, Effort] = (FULL, QUICK)) -> int:
    """Measures, appends, prints and draws; the exit status."""
    parser = Arguments("bench", f"{__doc__} There are {', '.join((*NAMES, *CURVES))}.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, no cost curves")
    parser.add_argument("--compare", metavar="OLD", help="an earlier results.jsonl, or a revision")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of results and plots")
    given = parser.parse_args(words)
    unknown = [name for name in given.names if name not in (*NAMES, *CURVES)]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join((*NAMES, *CURVES))}")
    effort = efforts[given.quick]
    names = given.names or (*NAMES, *(CURVES if effort.curves else ()))
    results = given.out / "results.jsonl"
    lines: list[Line] = []
    try:
        old = None if given.compare is None else earlier_run(given.compare, results)
        check_folder(given.out)
        shared = circumstances() | {"effort": "quick" if given.quick else "full"}
        for figures in measure(names, effort):
            lines += append(figures, results, shared)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; {len(lines)} figures are in {results}", file=sys.stderr)
        return 130
    if not lines:
        print("nothing was measured")
        return 0
    print(markdown(lines))
    print(
        f"\nappended to {results}; plots: {', '.join(map(str, draw(lines, given.out / 'plots')))}"
    )
    if old is None:
        return 0
    print()
    return print_comparison(old, lines)


def measure(names: Sequence[str], effort: Effort) -> Iterator[list[Figure]]:
    """The figures of each of these benchmarks, in this order."""
    load = os.getloadavg()[0]
    if load > BUSY:
        print(f"note: the machine is busy (load {load:.1f}), figures will be off", file=sys.stderr)
    for name in names:
        print(f"measuring {name} …", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="sharpwave-bench-") as folder:
            yield importlib.import_module(f"bench.{name}").measure(Path(folder), effort)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
