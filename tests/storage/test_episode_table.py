from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from storage.episode_table import episode_table, write_episode_table
from storage.log_header import LogHeader
from storage.log_record import RECORD


def records(count: int) -> np.ndarray:
    made = np.zeros(count, RECORD)
    made["ordinal"] = np.arange(count)
    made["ending"] = 1 + np.arange(count) % 4
    made["seed"] = 2**64 - 1
    made["seed_known"] = np.arange(count) % 2
    made["begin_time"] = 1_700_000_000_000_000_001
    return made


def test_columns_and_nulls() -> None:
    table = episode_table([(LogHeader("u", 5, [], 256, "run", 2), records(4))])
    assert table["ending"].to_pylist() == ["terminated", "truncated", "salvaged", "cut"]
    assert table["seed"].to_pylist() == [None, 2**64 - 1, None, 2**64 - 1]
    assert table["segment"].to_pylist() == [5] * 4
    assert table["lane"].to_pylist() == [2] * 4
    assert table.schema.field("begin_time").type == pa.timestamp("ns", tz="UTC")
    assert table["begin_time"][0].value == 1_700_000_000_000_000_001


def test_no_episodes_give_the_same_columns() -> None:
    empty = episode_table([])
    assert empty.num_rows == 0
    full = episode_table([(LogHeader("u", 0, [], 256, "", 0), records(2))])
    assert empty.schema == full.schema


def test_files_are_arrow_and_replaced_whole(tmp_path: Path) -> None:
    header = LogHeader("u", 0, [], 256, "", 0)
    for count in (3, 1):
        write_episode_table(tmp_path / "t.arrow", header, records(count), tmp_path)
        table = pa.ipc.open_file(tmp_path / "t.arrow").read_all()
        assert table.equals(episode_table([(header, records(count))]))
    assert [path.name for path in tmp_path.iterdir()] == ["t.arrow"]
