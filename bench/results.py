"""The file of results: one JSON line a figure, run after run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.figure import Figure

__all__ = ["FOLDER", "BenchError", "Line", "append", "check_folder", "newest", "read", "runs"]

FOLDER: Final = Path(__file__).parent
"""Where `results.jsonl` and `plots/` go unless told otherwise."""

Line = dict[str, Any]
"""One figure as it stands in the file: `Figure.line` and `circumstances`."""

_NUMBERS = ("value", "limit", "ratio")
_NEEDED = {
    "run",
    "revision",
    "name",
    "unit",
    "limit_name",
    "repeats",
    *(f"{name}{part}" for name in _NUMBERS for part in ("", "_p25", "_p75")),
}


class BenchError(Exception):
    """Input that the benchmarks cannot use; the message is one line."""


def check_folder(folder: Path) -> None:
    """Finds out, before anything is measured, whether results can be written.

    Raises:
        BenchError: they cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BenchError(f"--out {folder} cannot be written: {error.strerror}") from error


def append(figures: Sequence[Figure], path: Path, shared: Mapping[str, Any]) -> list[Line]:
    """Appends one line a figure, each with the `circumstances` of its run; the lines."""
    lines = [dict(shared) | figure.line() for figure in figures]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return lines


def read(path: Path) -> list[Line]:
    """All lines of a file, in its order.

    Raises:
        BenchError: no such file, none that can be read, or a line that is no figure.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BenchError(f"{path} cannot be read: {reason}; give a results.jsonl") from error
    numbered = enumerate(text.splitlines(), 1)
    lines = [_parsed(line, f"{path}, line {number}") for number, line in numbered if line.strip()]
    if not lines:
        raise BenchError(f"{path} holds no figure; `make bench` appends some")
    return lines


def runs(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines of each run, the oldest run first."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line["run"], []).append(line)
    return found


def newest(lines: Sequence[Line]) -> list[Line]:
    """The last line of each figure's name, in the order in which names first appeared."""
    return list({line["name"]: line for line in lines}.values())


def _parsed(text: str, place: str) -> Line:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise BenchError(f"{place}: no JSON ({error}); delete the line") from error
    absent = _NEEDED - line.keys() if isinstance(line, dict) else _NEEDED
    if absent:
        raise BenchError(
            f"{place}: no figure of this release's benchmarks, it lacks {', '.join(sorted(absent))}"
            "; measure anew with `make bench`"
        )
    return dict(line)
