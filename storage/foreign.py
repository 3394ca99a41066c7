"""The store as dask arrays and as an xarray dataset: lazy, over the committed rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.column_file import ColumnFile
from storage.layout import INNER_ROWS
from storage.schema import Column
from storage.zarr_metadata import dimension_names

if TYPE_CHECKING:
    import dask.array
    import xarray as xr

    from storage.store import Store

__all__ = ["to_dask", "to_xarray"]

_CHUNK_BYTES = 16 * 2**20


@dataclass(frozen=True)
class _LazyRows:
    """The committed rows of one column of one segment; travels to other processes by its path."""

    folder: Path
    column: Column
    capacity: int
    rows: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, *self.column.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.column.dtype

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        file = ColumnFile(self.folder, self.column, self.capacity)
        file.require(self.rows)
        return np.array(file.map(self.rows, writable=False)[key])


def _chunk_rows(column: Column) -> int:
    """Whole inner chunks of about 16 MiB."""
    return max(1, _CHUNK_BYTES // (column.row_bytes * INNER_ROWS)) * INNER_ROWS


def _column(store: Store, column: Column) -> dask.array.Array:
    import dask.array as da

    from_array: Any = da.from_array
    concatenate: Any = da.concatenate
    parts = []
    for info in store.segments:
        if not info.rows:
            continue
        folder = store.paths.segment(info.id) / column.name
        rows = _LazyRows(folder, column, info.capacity, info.rows)
        name = f"{column.name}-{store.uuid}-{info.id:06d}-{info.rows}"
        chunks = (min(info.rows, _chunk_rows(column)), *column.shape)
        parts.append(from_array(rows, chunks=chunks, name=name, meta=np.empty(0, column.dtype)))
    if not parts:
        parts.append(from_array(np.empty((0, *column.shape), column.dtype)))
    joined: dask.array.Array = concatenate(parts)
    return joined


def to_dask(store: Store) -> dict[str, dask.array.Array]:
    """Every column as dask array, shape (rows, *row shape); closing rows included."""
    return {column.name: _column(store, column) for column in store.schema.columns}


def to_xarray(store: Store) -> xr.Dataset:
    """A dataset over the dimension ``row``; ``kind`` tells steps (1) from closing rows (2)."""
    import xarray as xr

    arrays = to_dask(store)
    return xr.Dataset(
        {c.name: (dimension_names(c), arrays[c.name]) for c in store.schema.columns},
        attrs={"environment": store.env_spec.id, "store_uuid": store.uuid},
    )
