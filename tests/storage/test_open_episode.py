from __future__ import annotations

from pathlib import Path

import pytest

from storage.open_episode import OpenEpisodeNote, create_note, read_note, write_note


@pytest.mark.parametrize("seed", [None, 0, 2**64 - 1])
def test_round_trip_in_place(tmp_path: Path, seed: int | None) -> None:
    path = tmp_path / "000000.open"
    assert read_note(path) is None
    create_note(path)
    assert read_note(path) is None
    size = path.stat().st_size
    note = OpenEpisodeNote(12, seed, 3, 456)
    write_note(path, OpenEpisodeNote(1, 1, 1, 1))
    write_note(path, note)
    assert read_note(path) == note
    assert path.stat().st_size == size


def test_a_torn_note_counts_as_none(tmp_path: Path) -> None:
    path = tmp_path / "000000.open"
    create_note(path)
    write_note(path, OpenEpisodeNote(12, 5, 3, 456))
    data = bytearray(path.read_bytes())
    data[9] ^= 1
    path.write_bytes(data)
    assert read_note(path) is None
