"""What figures depend on besides the code: machine, versions, revision, date."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["circumstances"]

_LIBRARIES = ("torch", "numpy", "numba", "gymnasium", "mujoco", "lightning", "zarr")


def circumstances() -> dict[str, Any]:
    """Date (of the run, with microseconds: it names it), revision, machine, load and versions."""
    return {
        "run": datetime.now(UTC).isoformat(timespec="microseconds"),
        "revision": _revision(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "threads": os.environ.get("OMP_NUM_THREADS", "as many as cores"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _LIBRARIES},
    }


def _revision() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
