from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import storage
from storage.errors import ConfigError, FormatVersionError, StoreNotFoundError
from storage.layout import INNER_ROWS
from storage.log_header import LogHeader
from storage.log_record import record_dtype
from storage.root_metadata import root_document
from storage.segment_files import build_folder
from tests.storage.damage import Sound, column_file, cut, flip, row_at, tree
from tests.storage.zoo import SPACES, play, spec, tiny_spec


def record_at(sound: Sound, segment: int, place: int) -> int:
    """The byte of its log at which a record starts."""
    path = sound.paths.log(segment)
    header, size = LogHeader.decode(path.read_bytes(), path)
    return size + place * record_dtype(len(header.columns)).itemsize


def test_a_sound_store_has_no_finding_and_is_not_touched(sound: Sound) -> None:
    before = tree(sound.path)
    report = storage.verify(sound.path)
    assert report.findings == ()
    assert report.sound
    assert (report.segments, report.episodes, report.live_segments) == (4, 24, 0)
    with storage.open(sound.path) as store:
        assert report.steps == store.n_steps
        assert report.bytes_read > store.n_rows * store.schema.row_bytes
    assert tree(sound.path) == before


@pytest.mark.parametrize("space", SPACES)
def test_stores_of_every_space_are_sound(space: str, tmp_path: Path) -> None:
    environment = spec(SPACES[space], SPACES["discrete_start"], max_episode_steps=3)
    environment.observation_space.seed(0)
    store = storage.create(tmp_path / "s", environment, info={"x": "f4"}, life_loss=True)
    with store.writer() as writer:
        for _ in range(3):
            writer.begin(0, environment.observation_space.sample(), info={"x": 1})
            for t in range(3):
                writer.step(
                    0,
                    action=-3,
                    reward=1,
                    observation=environment.observation_space.sample(),
                    terminated=t == 2,
                    truncated=False,
                    behaviour=[0.25] * 4,
                )
    assert storage.verify(tmp_path / "s").findings == ()


def test_a_flipped_bit_of_a_row_names_the_episode(sound: Sound) -> None:
    flip(column_file(sound, 1, "reward").path, row_at(sound, 1, "reward", 3), 5)
    (error,) = storage.verify(sound.path).errors
    assert (error.kind, error.segment, error.ordinals) == ("checksum", 1, (0,))
    assert error.file == "steps.zarr/000001/reward/c.0"
    assert "repair" in error.remedy


def test_bits_of_rows_that_nobody_committed_mean_nothing(sound: Sound) -> None:
    with storage.open(sound.path) as store:
        rows = store.log(1).rows
    flip(column_file(sound, 1, "reward").path, row_at(sound, 1, "reward", rows), 5)
    assert storage.verify(sound.path).findings == ()


def test_a_short_column_names_the_episodes_that_it_lacks(sound: Sound) -> None:
    with storage.open(sound.path) as store:
        starts = store.records(0)["start"].tolist()
    second = starts[1]
    cut(column_file(sound, 0, "action").path, row_at(sound, 0, "action", second + 1))
    (error,) = storage.verify(sound.path).errors
    assert error.kind == "short-column"
    assert error.ordinals == tuple(range(1, len(starts)))


def test_a_last_chunk_that_is_cut_is_found_though_no_episode_lacks(sound: Sound) -> None:
    cut(column_file(sound, 0, "action").path, row_at(sound, 0, "action", INNER_ROWS) - 1)
    (error,) = storage.verify(sound.path).errors
    assert (error.kind, error.ordinals) == ("short-column", ())


def test_a_missing_column_names_every_episode(sound: Sound) -> None:
    column_file(sound, 2, "behaviour").path.unlink()
    (error,) = storage.verify(sound.path).errors
    assert (error.kind, error.ordinals) == ("missing-column", tuple(range(len(error.ordinals))))


@pytest.mark.parametrize("at", [3, 16_387, 30_000])
def test_the_shard_index_and_the_zeros_behind_it_are_compared(at: int, sound: Sound) -> None:
    flip(column_file(sound, 2, "kind").path, at)
    assert sound.kinds() == {"shard-index"}


def test_a_link_or_pipe_in_place_of_a_column_is_not_opened(sound: Sound, tmp_path: Path) -> None:
    file = column_file(sound, 0, "reward").path
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    pipe = column_file(sound, 1, "reward").path
    pipe.unlink()
    os.mkfifo(pipe)
    errors = storage.verify(sound.path).errors
    assert [each.kind for each in errors] == ["unreadable-column"] * 2
    assert "symbolic link" in errors[0].what
    assert "pipe" in errors[1].what


def test_links_in_place_of_folders_are_not_followed(sound: Sound, tmp_path: Path) -> None:
    column = column_file(sound, 0, "reward").path.parent
    for number, folder in enumerate((column, sound.paths.segment(1))):
        folder.rename(tmp_path / str(number))
        folder.symlink_to(tmp_path / str(number))
    before = tree(tmp_path / "0") | tree(tmp_path / "1")
    found = {(each.segment, each.kind) for each in storage.verify(sound.path).errors}
    assert found >= {(0, "unreadable-column"), (1, "log-without-segment")}
    storage.repair(sound.path)
    assert sound.kinds() == set()
    assert {segment for segment, _ in sound.readable()} == {2, 3}
    assert tree(tmp_path / "0") | tree(tmp_path / "1") == before


def test_a_broken_log_header_hides_no_other_segment(sound: Sound) -> None:
    flip(sound.paths.log(1), 30)
    flip(column_file(sound, 2, "reward").path, row_at(sound, 2, "reward", 0))
    errors = storage.verify(sound.path).errors
    assert [(each.kind, each.segment) for each in errors] == [
        ("log-unreadable", 1),
        ("checksum", 2),
    ]


@pytest.mark.parametrize("bit", [1, 4])
def test_a_version_that_a_flipped_bit_made_is_not_a_newer_one(bit: int, sound: Sound) -> None:
    flip(sound.paths.log(1), 8, bit)
    (error,) = storage.verify(sound.path).errors
    assert error.kind == "log-unreadable"


def test_a_bad_record_before_good_ones_is_found_and_the_others_are_examined(sound: Sound) -> None:
    flip(sound.paths.log(0), record_at(sound, 0, 2) + 40)
    flip(column_file(sound, 0, "reward").path, row_at(sound, 0, "reward", 0))
    found = storage.verify(sound.path).errors
    assert [each.kind for each in found] == ["log-record", "episode-table", "checksum"]
    assert "record 2 " in found[0].what
    assert found[2].ordinals == (0,)


def test_records_in_the_wrong_order_are_found(sound: Sound) -> None:
    path, first, second = sound.paths.log(0), record_at(sound, 0, 2), record_at(sound, 0, 3)
    data, size = path.read_bytes(), second - first
    swapped = data[second : second + size] + data[first:second]
    path.write_bytes(data[:first] + swapped + data[second + size :])
    assert "log-order" in sound.kinds()


def test_a_torn_tail_is_a_warning_with_its_bytes(sound: Sound) -> None:
    with sound.paths.log(3).open("ab") as file:
        file.write(b"x" * 77)
    report = storage.verify(sound.path)
    (warning,) = report.warnings
    assert (warning.kind, report.sound) == ("torn-tail", True)
    assert "77 bytes" in warning.what


def test_a_lost_last_record_is_an_error_where_metadata_tells_of_it(sound: Sound) -> None:
    """The record itself looks torn, but what was published counts its rows."""
    last = record_at(sound, 3, 1)
    cut(sound.paths.log(3), last + 10)
    found = {each.kind: each for each in storage.verify(sound.path).findings}
    assert "the log counts" in found["group-metadata"].what
    assert found["torn-tail"].severity == "warning"
    assert "open-episode" not in found, "nobody salvages it as one that was open"
    assert found["lost-records"].severity == "error"


def test_a_log_of_another_store_is_found(sound: Sound, tmp_path: Path) -> None:
    with storage.create(tmp_path / "other", tiny_spec()) as other, other.writer() as writer:
        play(writer, 0, 0)
    shutil.copy(other.paths.log(0), sound.paths.log(0))
    assert sound.kinds() == {"log-foreign"}


def test_logs_and_folders_without_each_other_are_found(sound: Sound) -> None:
    sound.paths.log(0).unlink()
    shutil.rmtree(sound.paths.segment(1))
    errors = storage.verify(sound.path).errors
    assert [(each.kind, each.segment) for each in errors] == [
        ("segment-without-log", 0),
        ("log-without-segment", 1),
    ]


def test_metadata_ahead_of_the_log_is_found_and_behind_it_is_not(sound: Sound) -> None:
    group = sound.paths.segment(0) / "zarr.json"
    with storage.open(sound.path) as store:
        end = int(store.records(0)["start"][2])
        rows = store.log(0).rows
    text = group.read_bytes()
    group.write_bytes(text.replace(b"        %d" % rows, b"        %d" % end))
    assert group.read_bytes() != text
    assert storage.verify(sound.path).findings == ()
    group.write_bytes(text.replace(b"        %d" % rows, b"        %d" % (end + 1)))
    assert sound.kinds() == {"group-metadata"}
    group.write_bytes(text.replace(b"        %d" % rows, b"        %d" % (rows + 9)))
    (error,) = storage.verify(sound.path).errors
    assert "the log counts" in error.what


@pytest.mark.parametrize("name", ["zarr.json", "reward/zarr.json"])
def test_metadata_that_no_writer_writes_or_is_missing_is_found(name: str, sound: Sound) -> None:
    file = sound.paths.segment(0) / name
    file.write_bytes(file.read_bytes().replace(b'"bytes"', b'"bytez"', 1))
    kind = "array-metadata" if "/" in name else "group-metadata"
    assert sound.kinds() == {kind}
    file.unlink()
    assert sound.kinds() == {kind}


def test_a_table_that_is_gone_or_not_the_log_s_is_found(sound: Sound) -> None:
    table = sound.paths.episode_table(0)
    shutil.copy(sound.paths.episode_table(1), table)
    assert sound.kinds() == {"episode-table"}
    table.write_bytes(b"ARROW1")
    assert sound.kinds() == {"episode-table"}
    table.unlink()
    assert sound.kinds() == {"episode-table"}


def test_root_metadata_is_checked_against_its_checksum_and_its_copy(sound: Sound) -> None:
    root = sound.paths.steps / "zarr.json"
    text = root.read_bytes()
    root.write_bytes(text.replace(b'"Zoo-v0"', b'"Zoo-v1"'))
    assert sound.kinds() == {"root-metadata"}
    root.unlink()
    assert sound.kinds() == {"root-metadata"}
    root.write_bytes(text)
    sound.paths.description.write_bytes(text[:-1])
    report = storage.verify(sound.path)
    assert [each.kind for each in report.warnings] == ["root-copy"]
    assert report.sound


def test_without_any_root_metadata_that_alone_is_reported(sound: Sound) -> None:
    (sound.paths.steps / "zarr.json").unlink()
    sound.paths.description.unlink()
    report = storage.verify(sound.path)
    assert [each.kind for each in report.findings] == ["root-metadata"]
    assert not report.sound


def test_attributes_that_others_added_to_the_root_are_no_fault(sound: Sound) -> None:
    import zarr

    zarr.open_group(sound.paths.steps, mode="r+").attrs["licence"] = "CC0"
    assert storage.verify(sound.path).findings == ()


def test_what_is_no_store_or_a_newer_one_is_refused(sound: Sound, tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="no Sharpwave store"):
        storage.verify(tmp_path / "nowhere")
    import json

    root = sound.paths.steps / "zarr.json"
    attributes = json.loads(root.read_bytes())["attributes"]
    del attributes["checksum"]
    root.write_bytes(root_document(attributes | {"format_version": 2}))
    with pytest.raises(FormatVersionError, match="newer"):
        storage.verify(sound.path)
    with pytest.raises(ConfigError, match="workers=0"):
        storage.verify(sound.path, workers=0)


def test_damaged_overlays_are_warnings(sound: Sound) -> None:
    overlay = sound.paths.overlays / "main.zarr"
    segment = next(overlay.glob("0*"))
    priorities = segment / "priority" / "c.0"
    data = bytearray(priorities.read_bytes())
    data[32_768:32_772] = b"\x00\x00\xc0\x7f"
    priorities.write_bytes(data)
    report = storage.verify(sound.path)
    assert report.sound
    assert [each.kind for each in report.warnings] == ["overlay-segment"]
    assert storage.verify(sound.path, overlays=False).findings == ()
    (overlay / "zarr.json").write_bytes(b"{}")
    assert sound.kinds() == {"overlay-segment", "overlay-metadata"}


def test_a_bit_of_an_overlay_fails_its_checksum(sound: Sound) -> None:
    segment = next((sound.paths.overlays / "main.zarr").glob("0*"))
    flip(segment / "last_drawn" / "c.0", 32_768)
    (warning,) = storage.verify(sound.path).warnings
    assert warning.what == "its rows are not those that its last view left"
    flip(segment / "last_drawn" / "c.0", 32_768)
    flip(segment / "last_drawn" / "checksum.json", 0, 7)
    (warning,) = storage.verify(sound.path).warnings
    assert "checksum.json" in warning.what


def test_an_overlay_that_a_view_writes_is_no_damage(sound: Sound) -> None:
    with storage.open(sound.path, "r+") as store:
        view = store.replay(64, scheme="per")
        for _ in range(3):
            batch = view.sample(8)
            view.feed_back(batch, priority_error=np.full(8, 2.0))
            assert storage.verify(sound.path).findings == ()
        view.close()
    assert storage.verify(sound.path).findings == ()


def test_strays_and_what_was_kept_aside_are_notes(sound: Sound) -> None:
    (sound.path / "thesis.txt").write_text("mine")
    (sound.paths.orphans / "000001.000").mkdir()
    (sound.paths.quarantine / "000002.000").mkdir()
    (sound.paths.staging / "zarr.json.999999999.0").write_text("half")
    (sound.paths.logs / "000000 (copy).log").write_text("?")
    report = storage.verify(sound.path)
    assert report.errors == report.warnings == ()
    assert {each.kind: each.file for each in report.notes if each.kind != "stray"} == {
        "orphans": "orphans/000001.000",
        "quarantine": "quarantine/000002.000",
        "staging": "staging/zarr.json.999999999.0",
    }
    assert [each.file for each in report.notes if each.kind == "stray"] == [
        "thesis.txt",
        "log/000000 (copy).log",
    ]


def test_a_segment_that_was_never_born_is_a_note(sound: Sound) -> None:
    build_folder(sound.paths.segment(4), sound.schema.columns, 2**18)
    (note,) = storage.verify(sound.path).findings
    assert (note.severity, note.segment) == ("note", 4)


def test_the_declared_step_limit_is_compared_with_the_episodes(tmp_path: Path) -> None:
    """Metadata said 100 steps, episodes had 200, and nobody noticed."""
    store = storage.create(tmp_path / "s", tiny_spec(max_episode_steps=4))
    with store.writer() as writer:
        records = [play(writer, 0, episode) for episode in range(6)]
    longer = tuple(record.ordinal for record in records if record.length > 4)
    report = storage.verify(tmp_path / "s")
    assert [(each.kind, each.ordinals) for each in report.findings] == [
        ("longer-than-declared", longer)
    ]
    assert longer
    assert report.sound


def test_the_report_is_json_and_progress_counts_segments(sound: Sound) -> None:
    flip(sound.paths.log(1), 30)
    seen = []
    report = storage.verify(
        sound.path, workers=1, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    told = report.to_json()
    assert (told["errors"], told["sound"], told["segments"]) == (1, False, 4)
    assert told["findings"][0]["segment"] == "000001"
