from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, ShardingCodec

from storage.schema import Column
from storage.zarr_metadata import array_document, dimension_names, encode, group_document

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


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
