"""One measured figure and the limit that it is compared with."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["Figure", "append_lines", "machine"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A median, with the limit that no implementation could beat, both in `unit`."""

    name: str
    unit: str
    value: float
    limit: float
    limit_name: str
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """How many times the limit's cost: 1 is perfect, larger is slower, for rates too."""
        rate = self.unit.endswith("/s")
        return self.limit / self.value if rate else self.value / self.limit


def append_lines(figures: list[Figure], path: Path) -> None:
    """Appends one JSON line a figure, each with the machine and the revision it stands for."""
    circumstances = machine()
    with path.open("a", encoding="utf-8") as lines:
        for figure in figures:
            line = circumstances | asdict(figure) | {"ratio": figure.ratio}
            lines.write(json.dumps(line) + "\n")


def machine() -> dict[str, Any]:
    """What a figure depends on: processor, cores, load, versions, revision, date."""
    names = ("torch", "numpy", "numba", "gymnasium", "lightning", "zarr")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "revision": _revision(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def _revision() -> str:
    root = Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
