"""Parquet files, which appear whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.atomic import write_atomic
from storage.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_rows", "write_rows"]


def write_rows(rows: Sequence[dict[str, Any]], schema: pa.Schema, path: Path) -> Path:
    """Writes `rows` into `path`, and gives it back.

    Raises:
        ConfigError: the file cannot be written there.
        DiskFullError: there is no room.
    """
    import pyarrow as pa
    import pyarrow.parquet

    buffer = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows), schema), buffer)
    try:
        write_atomic(path, buffer.getvalue().to_pybytes(), path.parent)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}; give another place by --output"
        ) from error
    return path


def read_rows(path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """The rows of `path`.

    Raises:
        ConfigError: it is not there, is no Parquet, or has other columns than `schema`.
    """
    import pyarrow as pa
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{path} cannot be read as Parquet: {error}") from error
    if table.schema.names != schema.names:
        raise ConfigError(
            f"{path} has columns {', '.join(table.schema.names)}, not those that "
            "`sharpwave protocol atari` writes; name such a file"
        )
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
