from __future__ import annotations

import numpy as np
import pytest

from storage.errors import CorruptStoreError
from storage.log_record import RecordKind, with_kind
from storage.verification.raw_log import read_raw_log
from storage.verification.row_places import Place, RowPlaces
from tests.storage.damage import Sound, flip


def test_a_sound_log_is_usable_throughout(sound: Sound) -> None:
    log = read_raw_log(sound.paths.log(0))
    assert log.usable.all()
    assert log.sealed
    assert (log.holes, log.tail, log.contradicting) == ([], b"", [])
    assert len(log.episodes) == len(log.slots) - 1


def test_what_cannot_be_used_before_usable_records_is_a_hole(sound: Sound) -> None:
    path = sound.paths.log(0)
    log = read_raw_log(path)
    size = log.slots.dtype.itemsize
    for place in (1, 2, len(log.slots) - 1):
        flip(path, len(log.header_bytes) + place * size + 20)
    torn = read_raw_log(path)
    assert torn.holes == [1, 2]
    assert not torn.sealed
    assert len(torn.tail) == size
    assert torn.rows == log.rows
    places = RowPlaces(torn)
    lost = slice(int(log.slots["start"][1]), int(log.slots["start"][3]))
    assert (places.place[lost] == Place.NOBODYS).all()
    assert (np.delete(places.place, lost) != Place.NOBODYS).all()


def test_a_whole_record_in_the_wrong_place_is_not_used(sound: Sound) -> None:
    path = sound.paths.log(0)
    log = read_raw_log(path)
    doubled = log.slots[[0, 1, 1, 2]].tobytes()
    path.write_bytes(log.header_bytes + doubled)
    read = read_raw_log(path)
    assert read.usable.tolist() == [True, True, False, False]
    assert read.contradicting == [2, 3]


def test_a_gap_too_small_for_the_lost_episodes_is_no_gap(sound: Sound) -> None:
    path = sound.paths.log(0)
    log = read_raw_log(path)
    path.write_bytes(log.header_bytes + log.slots[[0, 2]].tobytes())
    assert read_raw_log(path).usable.tolist() == [True, False]


def test_rows_of_voids_are_told_apart(sound: Sound) -> None:
    path = sound.paths.log(0)
    log = read_raw_log(path)
    records = [slot.tobytes() for slot in log.slots]
    records[1] = with_kind(records[1], RecordKind.VOID)
    path.write_bytes(log.header_bytes + b"".join(records))
    read = read_raw_log(path)
    assert len(read.voids) == 1
    assert read.rows == log.rows
    void = slice(int(log.slots["start"][1]), int(log.slots["start"][2]))
    assert (RowPlaces(read).place[void] == Place.VOID).all()
    assert len(RowPlaces(read)) == len(log.episodes) - 1


def test_an_unreadable_header_is_an_error(sound: Sound) -> None:
    flip(sound.paths.log(0), 0)
    with pytest.raises(CorruptStoreError, match="does not start as a commit log"):
        read_raw_log(sound.paths.log(0))
