"""The file of a phase: what may take its place, and where an interrupted phase goes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.protocol.parquet_file import kept_rows, write_rows
from pipeline.protocol.played import played_schema
from storage.errors import ConfigError

__all__ = ["check_replaceable", "write_part"]


def check_replaceable(output: Path, columns: Mapping[str, Any]) -> None:
    """Refuses to replace a whole phase by one that is played otherwise.

    `columns` are those that all rows of the new one share. One that was interrupted may be
    replaced, and one of the same conditions, which would come to the same.

    Raises:
        ConfigError: saying in what they differ.
    """
    rows = kept_rows(output)
    if not _whole(rows):
        return
    different = [
        _difference(name, rows[0][name], value)
        for name, value in columns.items()
        if name in rows[0] and any(_told(name, row[name]) != _told(name, value) for row in rows)
    ]
    if different:
        raise ConfigError(
            f"{output} holds a whole phase that was played otherwise: {'; '.join(different)}; give "
            "another place by --output, or move that file away"
        )


def write_part(rows: Sequence[dict[str, Any]], output: Path) -> Path:
    """Writes the episodes of an interrupted phase, and gives back where they are.

    What is at `output` stays, unless it is of an interrupted phase itself.
    """
    kept = kept_rows(output)
    if output.exists() and (not kept or _whole(kept)):
        output = output.with_name(f"{output.stem}.incomplete{output.suffix}")
    return write_rows(rows, played_schema(), output)


def _whole(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether they are of a phase that was played to its end; earlier versions kept no other."""
    return bool(rows) and "phase_seed" in rows[0] and all(row.get("complete", True) for row in rows)


def _told(name: str, value: Any) -> Any:
    """What is compared: of a checkpoint its name, since the place is as the user has typed it."""
    return Path(value).name if name == "checkpoint" else value


def _difference(name: str, there: Any, now: Any) -> str:
    if name == "settings":
        old, new = json.loads(there), json.loads(now)
        names = [each for each in {**old, **new} if old.get(each) != new.get(each)]
        return f"the run's {', '.join(names)}"
    return f"{name} {_told(name, there)} there, {_told(name, now)} now"
