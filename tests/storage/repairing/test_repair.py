from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import storage
from storage.commit_log import CommitLog
from storage.errors import (
    CorruptStoreError,
    OverlayInUseError,
    SegmentLockedError,
    StoreNotFoundError,
)
from storage.log_header import LogHeader
from storage.log_record import record_dtype
from tests.storage.damage import (
    Sound,
    column_file,
    cut,
    flip,
    reseal,
    row_at,
    set_row,
    spoil,
    tree,
)
from tests.storage.zoo import check_tiny, play, tiny_spec


def start_of(sound: Sound, segment: int, ordinal: int) -> int:
    return int(CommitLog(sound.paths.log(segment)).records["start"][ordinal])


def damage_episode(sound: Sound, segment: int, ordinal: int) -> None:
    row = start_of(sound, segment, ordinal)
    flip(
        column_file(sound, segment, "observation").path, row_at(sound, segment, "observation", row)
    )


def all_but(sound: Sound, *gone: tuple[int, int]) -> set[tuple[int, int]]:
    return set(sound.episodes) - set(gone)


def require_mended(sound: Sound, left: set[tuple[int, int]]) -> None:
    """Sound again, the rest reads as it was written, and a second repair does nothing."""
    assert sound.kinds() == set()
    assert sound.readable() == left
    before = tree(sound.path)
    assert storage.repair(sound.path).actions == ()
    assert tree(sound.path) == before


def test_a_sound_store_is_not_touched(sound: Sound) -> None:
    before = tree(sound.path)
    report = storage.repair(sound.path)
    assert (report.actions, report.quarantined, report.episodes_lost) == ((), (), 0)
    assert tree(sound.path) == before


def test_one_damaged_episode_goes_and_all_others_stay(sound: Sound) -> None:
    damage_episode(sound, 0, 3)
    before = tree(sound.path)
    planned = storage.repair(sound.path, dry_run=True)
    assert tree(sound.path) == before
    assert planned.dry_run
    assert planned.quarantined == ()
    done = storage.repair(sound.path)
    assert done.actions == planned.actions
    assert [(each.kind, each.ordinals) for each in done.actions] == [("void", (3,))]
    require_mended(sound, all_but(sound, (0, 3)))


def test_quarantine_keeps_the_old_log_and_the_damaged_rows(sound: Sound) -> None:
    damage_episode(sound, 0, 3)
    log = sound.paths.log(0).read_bytes()
    first = start_of(sound, 0, 3)
    end = start_of(sound, 0, 4)
    rows = {
        column.name: column_file(sound, 0, column.name).map(end, writable=False)[first:].tobytes()
        for column in sound.schema.columns
    }
    (folder,) = storage.repair(sound.path).quarantined
    kept = sound.path / folder
    assert folder == "quarantine/000000.000"
    assert (kept / "log/000000.log").read_bytes() == log
    for name, data in rows.items():
        assert (kept / f"rows-{first}-{end}" / f"{name}.bin").read_bytes() == data
    note = json.loads((kept / "note.json").read_bytes())
    assert note["action"] == "copied"
    assert "checksum" in note["why"][0]
    assert note["when"].startswith("20")


def test_every_reader_skips_what_went(sound: Sound) -> None:
    """Episodes by index and in turn, tables, replay, and foreign readers who mind the kinds."""
    pytest.importorskip("xarray")
    damage_episode(sound, 0, 0)
    damage_episode(sound, 1, 2)
    storage.repair(sound.path)
    left = all_but(sound, (0, 0), (1, 2))
    with storage.open(sound.path, "r+") as store:
        assert store.n_episodes == len(left) == store.episodes.num_rows
        indexed = [store.episode(index).record for index in range(store.n_episodes)]
        assert {(each.segment, each.ordinal) for each in indexed} == left
        assert store.n_steps == sum(each.length for each in indexed)
        data = store.to_xarray()
        steps = data.reward.values[data.kind.values == 1]
        assert len(steps) == store.n_steps
        assert (store.to_dask()["kind"].compute() == 2).sum() == len(left)
        view = store.replay(1000, private=True)
        rows = {
            (each.segment, row)
            for each in indexed
            for row in range(each.start, each.start + each.length)
        }
        for _ in range(20):
            batch = view.sample(16)
            drawn = zip(batch.segment.tolist(), batch.row.tolist(), strict=True)
            assert set(drawn) <= rows
        view.close()


def test_after_a_repair_recording_goes_on_under_the_next_free_id(sound: Sound) -> None:
    """A machine went down, one file was cut to half: the rest is listed, and life goes on."""
    file = column_file(sound, 3, "observation").path
    cut(file, file.stat().st_size // 2)
    with storage.open(sound.path) as store:
        assert str(file) in store.problems()[0]
    report = storage.repair(sound.path)
    assert "000003" in report.quarantined[0]
    assert {each for each in sound.readable() if each[0] < 3} == {
        each for each in sound.episodes if each[0] < 3
    }
    with storage.open(sound.path, "r+") as store, store.writer(run="next") as writer:
        record = play(writer, 0, 1)
        assert record.segment == 4
    with storage.open(sound.path) as store:
        check_tiny(store, record)
    assert sound.kinds() == set()


def test_a_segment_without_a_good_episode_is_set_aside_whole(sound: Sound) -> None:
    files = tree(sound.paths.segment(2))
    column_file(sound, 2, "reward").path.write_bytes(b"")
    report = storage.repair(sound.path)
    assert [each.kind for each in report.actions] == ["set-aside"]
    assert report.episodes_lost == sum(1 for each in sound.episodes if each[0] == 2)
    kept = sound.path / report.quarantined[0]
    assert set(tree(kept / "steps")) == set(files)
    assert {each.name for each in kept.iterdir()} >= {"log", "steps", "episodes.arrow", "note.json"}
    assert sound.paths.lock(2).exists()
    require_mended(sound, {each for each in sound.episodes if each[0] != 2})
    with storage.open(sound.path, "r+") as store, store.writer() as writer:
        assert play(writer, 0, 1).segment == 4


@pytest.mark.parametrize("damage", ["header", "no log", "no folder", "foreign"])
def test_a_segment_whose_log_or_folder_is_lost_is_set_aside(
    damage: str, sound: Sound, tmp_path: Path
) -> None:
    if damage == "header":
        spoil(sound.paths.log(1), 40)
    elif damage == "no log":
        sound.paths.log(1).unlink()
    elif damage == "no folder":
        shutil.rmtree(sound.paths.segment(1))
    else:
        with storage.create(tmp_path / "other", tiny_spec()) as other, other.writer() as writer:
            play(writer, 0, 0)
            writer.close()
            with other.writer() as second:
                play(second, 0, 0)
        shutil.copy(other.paths.log(1), sound.paths.log(1))
    assert [each.kind for each in storage.repair(sound.path).actions] == ["set-aside"]
    require_mended(sound, {each for each in sound.episodes if each[0] != 1})


@pytest.mark.parametrize("places", [[2], [0], [1, 2]], ids=str)
def test_lost_records_take_their_own_episodes_only(places: list[int], sound: Sound) -> None:
    path = sound.paths.log(0)
    header, size = LogHeader.decode(path.read_bytes(), path)
    for place in places:
        spoil(path, size + place * record_dtype(len(header.columns)).itemsize + 9)
    with pytest.raises(CorruptStoreError, match="sharpwave repair"):
        storage.open(sound.path)
    storage.repair(sound.path)
    require_mended(sound, all_but(sound, *((0, place) for place in places)))
    with storage.open(sound.path) as store:
        assert store.log(0).voids["ordinal"].tolist() == places
        assert store.log(0).sealed


@pytest.mark.parametrize("at", [0, 9, 13, 21, 30, 200, -1, -200, -330])
def test_a_flipped_bit_of_a_log_costs_no_episode(at: int, sound: Sound) -> None:
    """In its header, any record, the last one: the checksum tells which bit it was."""
    path = sound.paths.log(0)
    data = path.read_bytes()
    flip(path, at, 6)
    assert sound.kinds() != set()
    report = storage.repair(sound.path)
    assert [each.kind for each in report.actions] == ["correct-log"]
    assert path.read_bytes() == data
    kept = sound.path / report.quarantined[0] / "log/000000.log"
    assert sum((a ^ b).bit_count() for a, b in zip(kept.read_bytes(), data, strict=True)) == 1
    require_mended(sound, set(sound.episodes))


def test_an_episode_is_held_against_its_corrected_record(sound: Sound) -> None:
    """Both its record and its rows have a wrong bit: the record comes back, and damns it."""
    damage_episode(sound, 0, 2)
    header, size = LogHeader.decode(sound.paths.log(0).read_bytes(), sound.paths.log(0))
    flip(sound.paths.log(0), size + 2 * record_dtype(len(header.columns)).itemsize + 33)
    report = storage.repair(sound.path)
    assert [each.kind for each in report.actions] == ["correct-log", "void"]
    assert report.actions[1].ordinals == (2,)
    require_mended(sound, all_but(sound, (0, 2)))


def test_a_torn_tail_is_cut_and_kept(sound: Sound) -> None:
    with sound.paths.log(3).open("ab") as file:
        file.write(b"torn" * 10)
    report = storage.repair(sound.path)
    assert [each.kind for each in report.actions] == ["cut-tail"]
    kept = (sound.path / report.quarantined[0] / "log/000003.log").read_bytes()
    assert kept == sound.paths.log(3).read_bytes() + b"torn" * 10
    require_mended(sound, set(sound.episodes))


def test_an_episode_that_a_dead_writer_left_open_is_salvaged_after_the_repair(
    tmp_path: Path,
) -> None:
    storage.create(tmp_path / "dead", tiny_spec()).close()
    process = os.fork()
    if process == 0:
        writer = storage.open(tmp_path / "dead", "r+").writer()
        for episode in (0, 2):
            play(writer, 0, episode)
        play(writer, 0, 1, steps=4)
        os._exit(0)
    os.waitpid(process, 0)
    dead = Sound(tmp_path / "dead")
    rows = [start_of(dead, 0, episode) for episode in range(2)]
    for row in rows:
        flip(column_file(dead, 0, "reward").path, row_at(dead, 0, "reward", row))
    with dead.paths.log(0).open("ab") as file:
        file.write(b"torn")
    report = storage.repair(dead.path)
    assert {each.kind for each in report.actions} == {"void", "cut-tail"}
    with storage.open(dead.path, "r+") as again:
        again.writer().close()
        (record,) = [each.record for each in again.iterate_episodes()]
        assert (record.ordinal, record.ending.name) == (2, "SALVAGED")
        check_tiny(again, record, steps=4)
    assert dead.kinds() == set()


@pytest.mark.parametrize(
    "name",
    [
        "steps.zarr/000001/zarr.json",
        "steps.zarr/000001/reward/zarr.json",
        "steps.zarr/000001/reward/c.0",
        "episodes/000001.arrow",
        "steps.zarr/zarr.json",
        "log/store.json",
        "overlays/main.zarr/zarr.json",
    ],
)
def test_derived_files_come_back_byte_for_byte(name: str, sound: Sound) -> None:
    before = tree(sound.path, "locks")
    flip(sound.path / name, 2, 3)
    damaged = (sound.path / name).read_bytes()
    assert sound.kinds() != set()
    report = storage.repair(sound.path)
    assert report.episodes_lost == 0
    assert tree(sound.path, "locks", "quarantine") == before
    kept = [
        data
        for file, data in tree(sound.path / report.quarantined[0]).items()
        if "note" not in file
    ]
    assert kept == [damaged[: len(kept[0])]]
    require_mended(sound, set(sound.episodes))


def test_a_damaged_overlay_segment_is_moved_and_begun_anew(sound: Sound) -> None:
    segment = next((sound.paths.overlays / "main.zarr").glob("0*"))
    cut(segment / "priority" / "c.0", 100)
    files = tree(segment)
    report = storage.repair(sound.path)
    assert [each.kind for each in report.actions] == ["drop-overlay"]
    assert tree(sound.path / report.quarantined[0] / "overlay.main") == files
    require_mended(sound, set(sound.episodes))
    with storage.open(sound.path, "r+") as store:
        store.replay(64, scheme="per").close()
    assert sound.kinds() == set()


def test_an_overlay_in_use_is_not_moved(sound: Sound) -> None:
    with storage.open(sound.path, "r+") as store:
        view = store.replay(64, scheme="per")
        segment = view.sample(8).segment[0]
        folder = sound.paths.overlays / "main.zarr" / f"{segment:06d}"
        flip(folder / "far" / "c.0", 3)
        with pytest.raises(OverlayInUseError, match="main"):
            storage.repair(sound.path)
        view.close()
    assert [each.kind for each in storage.repair(sound.path).actions] == ["drop-overlay"]
    require_mended(sound, set(sound.episodes))


def test_what_is_no_file_makes_room_for_one(sound: Sound, tmp_path: Path) -> None:
    file = column_file(sound, 0, "reward").path
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    outside = (tmp_path / "elsewhere").read_bytes()
    report = storage.repair(sound.path)
    assert [each.kind for each in report.actions] == ["set-aside"]
    assert (tmp_path / "elsewhere").read_bytes() == outside
    require_mended(sound, {each for each in sound.episodes if each[0] != 0})


def test_impossible_values_under_right_checksums_go_as_well(sound: Sound) -> None:
    set_row(sound, 0, "reward", 0, float("nan"))
    reseal(sound, 0)
    assert storage.repair(sound.path).episodes_lost == 1
    require_mended(sound, all_but(sound, (0, 0)))


def test_rows_of_a_void_that_count_again_are_unwritten(sound: Sound) -> None:
    first = start_of(sound, 0, 3)
    damage_episode(sound, 0, 3)
    storage.repair(sound.path)
    set_row(sound, 0, "kind", first, 1)
    assert sound.kinds() == {"void-rows"}
    storage.repair(sound.path)
    require_mended(sound, all_but(sound, (0, 3)))


def test_a_live_writer_s_damaged_segment_is_refused_and_nothing_changes(sound: Sound) -> None:
    damage_episode(sound, 0, 3)
    with storage.open(sound.path, "r+") as store:
        writer = store.writer(run="live")
        play(writer, 0, 1)
        writer.publish()
        live = column_file(sound, 4, "reward").path
        flip(live, row_at(sound, 4, "reward", 0))
        before = tree(sound.path)
        for dry_run in (True, False):
            with pytest.raises(SegmentLockedError, match="live writer holds segment 000004"):
                storage.repair(sound.path, dry_run=dry_run)
        assert tree(sound.path) == before
        flip(live, row_at(sound, 4, "reward", 0))
        assert storage.repair(sound.path).episodes_lost == 1
        assert play(writer, 0, 2).segment == 4
        writer.close()
    assert sound.kinds() == set()


def test_without_any_root_metadata_there_is_no_repair(sound: Sound, tmp_path: Path) -> None:
    (sound.paths.steps / "zarr.json").unlink()
    sound.paths.description.unlink()
    with pytest.raises(CorruptStoreError, match="both damaged"):
        storage.repair(sound.path)
    with pytest.raises(StoreNotFoundError):
        storage.repair(tmp_path)


def test_content_and_checks_go_on_over_several_repairs(sound: Sound) -> None:
    for ordinal in (0, 1):
        damage_episode(sound, 0, 0)
        (folder,) = storage.repair(sound.path).quarantined
        assert folder == f"quarantine/000000.{ordinal:03d}"
    require_mended(sound, all_but(sound, (0, 0), (0, 1)))
