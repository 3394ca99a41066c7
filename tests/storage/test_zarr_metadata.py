from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, ShardingCodec

from storage.schema import Column
from storage.zarr_metadata import (
    array_document,
    array_json,
    dimension_names,
    encode,
    group_document,
    group_json,
)

DTYPES = ["bool", "float16", "float32", "float64"] + [
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 5)])
def test_equals_what_zarr_python_writes(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    column = Column("x", np.dtype(dtype), shape)
    serializer = ShardingCodec(
        chunk_shape=(256, *shape),
        codecs=[BytesCodec(endian=None if column.dtype.itemsize == 1 else "little")],
        index_location="start",
    )
    zarr.create_array(
        tmp_path / "x",
        shape=(300, *shape),
        dtype=dtype,
        chunks=(1024, *shape),
        serializer=serializer,
        compressors=None,
        filters=None,
        dimension_names=dimension_names(column),
        chunk_key_encoding={"name": "default", "separator": "."},
    )
    theirs = (tmp_path / "x" / "zarr.json").read_bytes()
    assert encode(array_document(column, 300, 1024)) == theirs
    assert array_json(column, 300, 1024) == theirs


def test_groups_equal_what_zarr_python_writes(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "g", attributes={"a": 1})
    assert encode(group_document({"a": 1})) == (tmp_path / "g" / "zarr.json").read_bytes()
    group.create_array("x", shape=(5,), dtype="u1", chunks=(5,))
    with pytest.warns(UserWarning, match="Consolidated"):
        zarr.consolidate_metadata(tmp_path / "g")
    theirs = json.loads((tmp_path / "g" / "zarr.json").read_text())
    member = json.loads((tmp_path / "g" / "x" / "zarr.json").read_text())
    ours = json.loads(encode(group_document({"a": 1}, [("x", member)])))
    assert ours == theirs
    assert list(ours) == list(theirs)


def test_templates_equal_whole_documents() -> None:
    columns = (Column("x", np.dtype("<f4"), (2,)), Column("kind", np.dtype("u1")))
    documents = [(column.name, array_document(column, 77, 512)) for column in columns]
    assert group_json(columns, 77, 512) == encode(group_document({}, documents))
