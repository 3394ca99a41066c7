"""What the writer asks the disk to keep, and when: no root, no mount, no kernel to trust."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import storage
from storage.errors import CorruptStoreError, StoreNotFoundError
from storage.layout import data_offset
from tests.faults.oracle import survey
from tests.faults.power import reboot
from tests.faults.sync_record import SyncRecord
from tests.storage.zoo import check_tiny, play, tiny_spec


@pytest.mark.parametrize("group", [1, 4], ids=["each", "groups"])
@pytest.mark.parametrize("every", [61, pytest.param(3, marks=pytest.mark.soak)])
def test_whatever_sync_is_the_last_all_that_was_acknowledged_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int, every: int
) -> None:
    """At every n-th sync the power goes: the rebuilt store is opened, checked and salvaged."""
    path, rebuilt = tmp_path / "place/store", tmp_path / "rebuilt"
    acknowledged: list = []
    done: list[int] = []

    def cut() -> None:
        if record.syncs % every or done:
            return
        done.append(record.syncs)  # what is opened below syncs as well
        try:
            record.rebuild(path, rebuilt)
            check(rebuilt, acknowledged)
        finally:
            shutil.rmtree(rebuilt, ignore_errors=True)
            record.syncs = done.pop()

    path.parent.mkdir()
    record = SyncRecord(monkeypatch, path.parent, cut)
    store = storage.create(path, tiny_spec())
    waiting = []
    settings = {"row_budget": 60, "capacity": 256, "sync_episodes": 1 if group == 1 else 100}
    with store.writer(durability="fsync", **settings) as writer:
        for episode in range(40):
            waiting.append(play(writer, 0, episode))
            if len(waiting) == group:
                if group > 1:
                    writer.sync()
                acknowledged += waiting
                waiting.clear()
    assert record.syncs > 100


def check(path: Path, acknowledged: list) -> None:
    if not acknowledged:
        try:
            storage.open(path).close()
        except (StoreNotFoundError, CorruptStoreError):
            return  # a store that is being made
    reboot(path)
    found = survey(path)
    with storage.open(path) as store:
        for record in acknowledged:
            assert (record.segment, record.start) in found
            check_tiny(store, record)
    with storage.open(path, mode="r+").writer() as writer:
        play(writer, 0, 1)
    assert survey(path).keys() > {(record.segment, record.start) for record in acknowledged}


def test_rows_that_never_reached_the_disk_are_not_shown_after_a_boot(tmp_path: Path) -> None:
    """What a cut leaves under process durability: a log that is ahead of its rows."""
    path = tmp_path / "store"
    with storage.create(path, tiny_spec()).writer() as writer:
        records = [play(writer, 0, episode) for episode in range(6)]
    lost = records[3]
    with storage.open(path) as store:
        row = store.segment(0).array("observation")[0].nbytes
        offset = data_offset(store.segments[0].capacity) + lost.start * row
    with (path / "steps.zarr/000000/observation/c.0.0").open("r+b") as file:
        file.seek(offset)
        file.write(bytes((lost.length + 1) * row))
    assert len(storage.open(path).episodes) == 6, "the same boot trusts what it wrote"
    reboot(path)
    with storage.open(path) as store:
        assert [each.record.ordinal for each in store.iterate_episodes()] == [0, 1, 2, 4, 5]
    (named,) = storage.verify(path).errors
    assert (named.kind, named.ordinals) == ("checksum", (3,))
    storage.repair(path)
    assert storage.verify(path).sound
    assert survey(path).keys() == {(0, each.start) for each in records if each is not lost}
