from __future__ import annotations

from storage.layout import DEFAULT_CAPACITY, align_up, data_offset, segment_name


def test_data_starts_after_the_index() -> None:
    assert data_offset(DEFAULT_CAPACITY) == 32_768
    assert data_offset(256) == 16_384
    # 1,023 inner chunks fill 16,372 bytes with their checksum, 1,024 do not fit any more.
    assert data_offset(1023 * 256) == 16_384
    assert data_offset(1024 * 256) == 32_768


def test_names_and_alignment() -> None:
    assert segment_name(42) == "000042"
    assert [align_up(value, 256) for value in (0, 1, 256, 257)] == [0, 256, 256, 512]
