"""Parquet files, which appear whole or not at all."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.atomic import write_atomic
from storage.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_place", "kept_rows", "read_rows", "write_rows"]

_TEMPORARY: Final = "." + 40 * "0"
"""As long as what a name gets while it is written, at most."""


def check_place(path: Path) -> None:
    """Refuses, before there is something to write, a path where `write_rows` would fail.

    Nothing is left in the folder, and a file that is there stays as it is.

    Raises:
        ConfigError: saying why.
    """
    _refuse_other(path)
    with _refused(path), tempfile.TemporaryFile(dir=path.parent):
        pass


def write_rows(rows: Sequence[dict[str, Any]], schema: pa.Schema, path: Path) -> Path:
    """Writes `rows` into `path`, and gives it back.

    Raises:
        ConfigError: the file cannot be written there.
        DiskFullError: there is no room.
    """
    import pyarrow as pa
    import pyarrow.parquet

    _refuse_other(path)
    buffer = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows), schema), buffer)
    with _refused(path):
        write_atomic(path, buffer.getvalue().to_pybytes(), path.parent)
    return path


def read_rows(path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """The rows of `path`.

    Raises:
        ConfigError: it is not there, is no Parquet, or has other columns than `schema`.
    """
    table = _table(path)
    lacking = [name for name in schema.names if name not in table.schema.names]
    if set(table.schema.names) < set(schema.names):
        raise ConfigError(
            f"{path} lacks the columns {', '.join(lacking)}: an earlier version wrote it; play the "
            "phase again"
        )
    if table.schema.names != schema.names:
        raise ConfigError(
            f"{path} has columns {', '.join(table.schema.names)}, not those that "
            "`sharpwave protocol atari` writes; name such a file"
        )
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def kept_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of `path`, whatever its columns; none where there is no Parquet file."""
    try:
        rows: list[dict[str, Any]] = _table(path).to_pylist()
    except ConfigError:
        return []
    return rows


def _table(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet

    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name a Parquet file, such as one in it")
    try:
        table = pyarrow.parquet.read_table(path)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {path}") from error
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{path} cannot be read as Parquet: {error}") from error
    return table


def _refuse_other(path: Path) -> None:
    """Refuses what is no place for a file: a device, say, would be replaced by one."""
    with _refused(path):
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "no ordinary file"
            raise ConfigError(f"{path} is {what}; give another place by --output")
        if not path.parent.exists():
            raise ConfigError(
                f"{path} cannot be written: there is no folder {path.parent}; give another "
                "place by --output, or make it"
            )
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + _TEMPORARY).lstat()


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}; give another place by --output"
        ) from error
