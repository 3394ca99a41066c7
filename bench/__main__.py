"""Runs the benchmarks whose names are given, or all of them."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Final

from bench.figure import Figure, append_lines
from bench.report import RESULTS, markdown

NAMES: Final = ("appending", "sampling", "acting", "updating", "collecting", "looping")


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    if os.getloadavg()[0] > 0.7:
        print(f"note: the machine is busy (load {os.getloadavg()[0]:.1f})", file=sys.stderr)
    figures: list[Figure] = []
    for name in names or NAMES:
        print(f"measuring {name} …", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="sharpwave-bench-") as folder:
            figures += importlib.import_module(f"bench.{name}").measure(Path(folder))
    append_lines(figures, RESULTS)
    print(markdown([asdict(figure) | {"ratio": figure.ratio} for figure in figures]))
    print(f"\nappended to {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
