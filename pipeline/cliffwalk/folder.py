"""Where a study of Blind Cliffwalk keeps its trials, tables, pictures and memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from pipeline.cliffwalk.record import SCHEMA, Record
from pipeline.held_folder import held_folder
from storage.errors import ConfigError
from training.cliffwalk.trial import Trial

__all__ = ["CliffwalkFolder", "write_table"]

_OWN: Final = ("runs", "summary", "curves", "mse", "updates", "theorem", "memories")
"""Names, without endings, of all that a study writes."""


@dataclass(frozen=True, slots=True)
class CliffwalkFolder:
    """PATH/{runs, summary}.{parquet, csv}, curves.parquet, {mse, updates}.png, memories/.

    `sharpwave cliffwalk --theorem` adds theorem.{parquet, csv, png}.
    """

    path: Path

    @classmethod
    def at(cls, path: Path) -> CliffwalkFolder:
        """The study at `path`, or one that may begin there.

        Raises:
            ConfigError: something else is there.
        """
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{path} is a file; choose another --folder")
        strangers = sorted(
            each.name
            for each in (path.iterdir() if path.is_dir() else ())
            if each.name.lstrip(".").split(".")[0] not in _OWN
        )
        if strangers:
            raise ConfigError(
                f"{path} holds {strangers[0]}, so it is no folder of a Blind Cliffwalk study; "
                "choose another --folder"
            )
        return cls(path)

    def held(self) -> AbstractContextManager[None]:
        """The folder, made where it is not there, and held against other processes.

        Raises:
            ConfigError: another process plays in it.
        """
        return held_folder(
            self.path,
            f"another process plays in {self.path}: let it finish or stop it, or choose "
            "another --folder",
        )

    def memory(self, n: int) -> Path:
        """The store that trials with n states replay."""
        return self.path / "memories" / f"{n:02d}.store"

    def read(self) -> dict[Trial, Record]:
        """All finished trials.

        Raises:
            ConfigError: a table is damaged, or of another kind.
        """
        if not (self.path / "runs.parquet").exists():
            return {}
        rows = _read(self.path / "runs.parquet", SCHEMA)
        curves = {}
        if (self.path / "curves.parquet").exists():
            curves = {_key(row): row for row in _read(self.path / "curves.parquet", _CURVES)}
        records = [Record.of(row, _curve(curves.get(_key(row)))) for row in rows]
        return {record.trial: record for record in records}

    def save(self, records: Iterable[Record]) -> None:
        """Writes runs.parquet, runs.csv and curves.parquet anew."""
        kept = list(records)
        rows = [record.row() for record in kept]
        write_table(pa.Table.from_pylist(rows, SCHEMA), self.path / "runs")
        curves = [
            {name: row[name] for name in _KEY}
            | {
                "at": [updates for updates, _ in record.outcome.curve],
                "error": [error for _, error in record.outcome.curve],
            }
            for row, record in zip(rows, kept, strict=True)
            if record.outcome.curve
        ]
        _replace(
            self.path / "curves.parquet",
            lambda path: pyarrow.parquet.write_table(pa.Table.from_pylist(curves, _CURVES), path),
        )


_KEY: Final = SCHEMA.names[: SCHEMA.names.index("updates")]
_CURVES: Final = pa.schema(
    [
        *(SCHEMA.field(name) for name in _KEY),
        pa.field("at", pa.list_(pa.int64())),
        pa.field("error", pa.list_(pa.float64())),
    ]
)


def write_table(table: pa.Table, stem: Path) -> None:
    """Writes `stem`.parquet and `stem`.csv, each whole or not at all."""
    parquet, csv = stem.with_suffix(".parquet"), stem.with_suffix(".csv")
    _replace(parquet, lambda path: pyarrow.parquet.write_table(table, path))
    _replace(csv, lambda path: pyarrow.csv.write_csv(table, path))


def _replace(path: Path, write: Any) -> None:
    staged = path.with_name(f".{path.name}.new")
    write(staged)
    staged.replace(path)


def _read(path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(
            f"{path} cannot be read ({error}); remove it or choose another --folder"
        ) from error
    if table.schema.names != schema.names:
        raise ConfigError(
            f"{path} has columns {', '.join(table.schema.names)}, which no study of this version "
            "has; choose another --folder"
        )
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEY)


def _curve(row: Mapping[str, Any] | None) -> list[tuple[int, float]]:
    return [] if row is None else list(zip(row["at"], row["error"], strict=True))
