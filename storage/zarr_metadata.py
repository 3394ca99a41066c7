"""The Zarr v3 metadata of segments and overlays, as zarr-python would write it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from storage.layout import INNER_ROWS
from storage.schema import Column

__all__ = [
    "array_document",
    "array_json",
    "dimension_names",
    "encode",
    "group_document",
    "group_json",
]

Document = dict[str, Any]


def encode(document: Mapping[str, Any]) -> bytes:
    """The document as the bytes of a ``zarr.json``."""
    return json.dumps(document, indent=2, allow_nan=False).encode()


def dimension_names(column: Column) -> list[str]:
    """Names of the axes: ``row`` is shared by all columns, the others are the column's own."""
    return ["row"] + [f"{column.name}_dim_{axis}" for axis in range(1, 1 + len(column.shape))]


def _fill_value(dtype: np.dtype[Any]) -> bool | int | float:
    if dtype.kind == "b":
        return False
    return 0.0 if dtype.kind == "f" else 0


def _bytes_codec(dtype: np.dtype[Any]) -> Document:
    if dtype.itemsize == 1:
        return {"name": "bytes"}
    return {"name": "bytes", "configuration": {"endian": "little"}}


def _sharding(column: Column) -> Document:
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [INNER_ROWS, *column.shape],
            "codecs": [_bytes_codec(column.dtype)],
            "index_codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "crc32c"},
            ],
            "index_location": "start",
        },
    }


def array_document(column: Column, rows: int, capacity: int) -> Document:
    """Metadata of a column that has ``rows`` published rows in a shard of ``capacity`` rows."""
    return {
        "shape": [rows, *column.shape],
        "data_type": column.dtype.name,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [capacity, *column.shape]},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": _fill_value(column.dtype),
        "codecs": [_sharding(column)],
        "attributes": {},
        "dimension_names": dimension_names(column),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


def group_document(
    attributes: Mapping[str, Any], arrays: Iterable[tuple[str, Document]] | None = None
) -> Document:
    """Metadata of a group; with ``arrays``, the inline consolidated metadata of its members."""
    document: Document = {"attributes": dict(attributes), "zarr_format": 3}
    if arrays is not None:
        document["consolidated_metadata"] = {
            "kind": "inline",
            "must_understand": False,
            "metadata": dict(sorted(arrays)),
        }
    document["node_type"] = "group"
    return document


_ROWS = 987_654_321_012_345
"""Stands for the number of rows in a template; no dimension is that long."""


@lru_cache(maxsize=256)
def _array_template(column: Column, capacity: int) -> bytes:
    return encode(array_document(column, _ROWS, capacity))


@lru_cache(maxsize=16)
def _group_template(columns: tuple[Column, ...], capacity: int) -> bytes:
    arrays = [(column.name, array_document(column, _ROWS, capacity)) for column in columns]
    return encode(group_document({}, arrays))


def array_json(column: Column, rows: int, capacity: int) -> bytes:
    """The bytes of an array's ``zarr.json``; encoded once, then only the rows are filled in."""
    return _array_template(column, capacity).replace(b"%d" % _ROWS, b"%d" % rows)


def group_json(columns: tuple[Column, ...], rows: int, capacity: int) -> bytes:
    """The bytes of a segment group's ``zarr.json``, its arrays consolidated."""
    return _group_template(columns, capacity).replace(b"%d" % _ROWS, b"%d" % rows)
