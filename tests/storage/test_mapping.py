from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

from storage.mapping import map_file


def maps_of(path: Path) -> int:
    return Path("/proc/self/maps").read_text().count(str(path))


def test_no_descriptor_is_kept_and_the_last_array_unmaps(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(bytes(range(16)))
    before = len(os.listdir("/proc/self/fd"))
    mapped = map_file(path, 16, writable=False)
    view = mapped.view("<u4")[1:]
    assert len(os.listdir("/proc/self/fd")) == before
    del mapped
    gc.collect()
    assert maps_of(path) == 1
    assert view[0] == int.from_bytes(bytes([4, 5, 6, 7]), "little")
    del view
    gc.collect()
    assert maps_of(path) == 0


def test_read_only_maps_cannot_be_made_writable(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(bytes(8))
    mapped = map_file(path, 8, writable=False)
    with pytest.raises(ValueError, match="WRITEABLE"):
        mapped.flags.writeable = True


def test_a_map_beyond_the_end_sees_what_the_file_grows_to(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(bytes(4096))
    reader = map_file(path, 1 << 20, writable=False)
    os.truncate(path, 8192)
    writer = map_file(path, 8192, writable=True)
    writer[5000] = 7
    assert reader[5000] == 7
    assert np.shares_memory(reader, writer) is False
