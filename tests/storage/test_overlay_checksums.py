from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr

import storage
from storage.checksum import crc32c
from storage.overlay_checksums import forget_checksums, read_checksum
from storage.overlay_segment import OVERLAY_COLUMNS
from tests.storage.zoo import F4, play, tiny_spec

LEARN = """
import sys, time
import numpy as np
import storage
view = storage.open(sys.argv[1], mode="r+").replay(window=8, scheme="per")
batch = view.sample(4)
view.feed_back(batch, priority_error=np.full(4, 3, np.float32))
print("fed", flush=True)
time.sleep(60)
"""


def learn(store: storage.Store, error: float, window: int = 8) -> None:
    """Open, draw, feed back, close."""
    with store.replay(window=window, scheme="per") as view:
        batch = view.sample(4)
        view.feed_back(batch, priority_error=np.full(4, error, np.float32))


def recorded(store: storage.Store, overlay: str = "main") -> set[int]:
    """Segments of which every column has a checksum."""
    folders = (store.path / f"overlays/{overlay}.zarr").glob("0*")
    whole = {int(folder.name): len(list(folder.glob("*/checksum.json"))) for folder in folders}
    assert set(whole.values()) <= {0, len(OVERLAY_COLUMNS)}
    return {segment for segment, count in whole.items() if count}


def flip(path: Path, at: int, mask: int = 1) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ mask]))


def test_a_closed_view_leaves_the_checksums_of_its_rows(f4: F4, caplog) -> None:
    learn(f4.store, 2.0)
    for column in OVERLAY_COLUMNS:
        folder = f4.path / f"overlays/main.zarr/000000/{column.name}"
        known = read_checksum(folder)
        assert known is not None
        assert known.rows == 256
        rows = (folder / "c.0").read_bytes()[32768 : 32768 + 256 * column.row_bytes]
        assert known.crc32c == crc32c(rows)
    learn(f4.store, 5.0)
    assert caplog.text == ""


def test_none_are_there_while_a_view_writes_or_after_it_was_killed(f4: F4, caplog) -> None:
    f4.writer.close()
    learn(f4.store, 2.0)
    assert recorded(f4.store) == {0}
    command = [sys.executable, "-c", LEARN, str(f4.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "fed\n"
        assert recorded(f4.store) == set()
        child.send_signal(signal.SIGKILL)
    assert recorded(f4.store) == set()
    learn(f4.store, 4.0)
    assert recorded(f4.store) == {0}
    assert caplog.text == ""


def test_rows_that_fail_their_checksum_count_as_never_set(f4: F4, caplog) -> None:
    learn(f4.store, 7.0)
    value = f4.path / "overlays/main.zarr/000000/value/c.0"
    flip(value, 32768 + 4 * 2 + 1)  # the second lowest byte of row 2: plausible, and wrong
    overlay = f4.store.overlay(mode="r+")
    caches = overlay.segment(0, 12)
    assert "value of segment 000000 fail their checksum" in caplog.text
    for column in OVERLAY_COLUMNS:
        assert not caches.array(column.name).any()
    overlay.close()
    caplog.clear()
    learn(f4.store, 1.0)
    assert caplog.text == ""


def test_a_column_cut_behind_some_rows_fails_its_checksum(f4: F4, caplog) -> None:
    learn(f4.store, 7.0)
    os.truncate(f4.path / "overlays/main.zarr/000000/priority/c.0", 32768 + 4 * 2)
    caches = f4.store.overlay(mode="r+").segment(0, 12)
    assert "priority of segment 000000 fail their checksum" in caplog.text
    assert not caches.array("value_target").any()


def test_segments_that_leave_the_window_get_theirs_then(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(row_budget=8) as writer:
        for episode in range(6):
            play(writer, 0, episode)
    with store.replay(window=1000) as view:
        assert recorded(store) == set()
        view.window = 3
        while view.forget():
            pass
        left = {info.id for info in store.segments} - view.needed_segments()
        assert left
        assert recorded(store) == left
    assert recorded(store) == {info.id for info in store.segments}


def test_space_behind_the_rows_of_a_sealed_segment_is_given_back(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(row_budget=300) as writer:
        for episode in range(90):
            play(writer, 0, episode)
    sealed = [info for info in store.segments if info.sealed]
    assert sealed
    for _ in range(2):  # opened again, it grows again, and keeps what it held
        with store.replay(window=1000, scheme="per") as view:
            view.feed_back(view.sample(64), priority_error=np.full(64, 3, np.float32))
            held = {i.id: store.overlay().segment(i.id, i.rows).array("priority") for i in sealed}
            held = {segment: array.tobytes() for segment, array in held.items()}
        for info in sealed:
            file = store.path / f"overlays/main.zarr/{info.id:06d}/priority/c.0"
            assert file.stat().st_size == 32768 + 4 * -(-info.rows // 256) * 256
            now = store.overlay().segment(info.id, info.rows).array("priority")
            assert now.tobytes() == held[info.id]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"rows": -1, "crc32c": 0}', '{"rows": 1, "crc32c": "x"}', "[" * 4000]
)
def test_checksums_that_are_none_tell_nothing(f4: F4, caplog, text: str) -> None:
    learn(f4.store, 7.0)
    folder = f4.path / "overlays/main.zarr/000000/value"
    (folder / "checksum.json").write_text(text)
    assert read_checksum(folder) is None
    learn(f4.store, 7.0)
    assert caplog.text == ""
    assert read_checksum(folder) is not None


def test_what_is_forgotten_is_gone_from_every_overlay(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(row_budget=8) as writer:
        for episode in range(6):
            play(writer, 0, episode)
    segments = {info.id for info in store.segments}
    for name in ("a", "b"):
        store.replay(window=1000, overlay=name).close()
    forget_checksums(store.paths.overlays, 0, OVERLAY_COLUMNS)
    assert recorded(store, "a") == recorded(store, "b") == segments - {0}
    forget_checksums(tmp_path / "none", 0, OVERLAY_COLUMNS)


def test_foreign_readers_see_columns_alone(f4: F4) -> None:
    learn(f4.store, 7.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        root = zarr.open_group(f4.path / "overlays/main.zarr", mode="r")
        names = {name for name, _ in root.members(max_depth=None)}
    assert names == {"000000"} | {f"000000/{column.name}" for column in OVERLAY_COLUMNS}


def test_a_forked_child_that_closes_its_copy_records_nothing(f4: F4) -> None:
    view = f4.store.replay(window=8)
    child = os.fork()
    if child == 0:
        view._overlay.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert recorded(f4.store) == set()
    view.close()
    assert recorded(f4.store) == {0}
