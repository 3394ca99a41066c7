from __future__ import annotations

import json
from pathlib import Path

import pytest

import storage
from pipeline.repair import main
from tests.storage.damage import Sound, column_file, flip, make_sound, row_at, tree


@pytest.fixture
def damaged(tmp_path: Path) -> Sound:
    """Episode 3 of 6 or more is damaged, and so is a table."""
    sound = make_sound(tmp_path / "store")
    with storage.open(sound.path) as store:
        row = int(store.records(0)["start"][3])
    flip(column_file(sound, 0, "reward").path, row_at(sound, 0, "reward", row))
    sound.paths.episode_table(1).write_bytes(b"")
    return sound


def test_a_dry_run_tells_what_a_repair_then_does(
    damaged: Sound, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(damaged.path)
    assert main([str(damaged.path), "--dry-run"]) == 0
    planned = capsys.readouterr().out.splitlines()
    assert tree(damaged.path) == before
    assert planned[:2] == [
        "segment 000000: take 1 damaged episode out (3)",
        "segment 000001: derive 1 file again: episodes/000001.arrow",
    ]
    assert planned[2].startswith("1 episode would be taken out by `sharpwave repair ")
    assert planned[2].endswith("`; nothing was changed")
    assert main([str(damaged.path)]) == 0
    done = capsys.readouterr().out.splitlines()
    assert done[:2] == planned[:2]
    assert done[2] == (
        "1 episode taken out; old bytes are in quarantine/000000.000, quarantine/000001.000"
    )
    assert damaged.kinds() == set()
    assert damaged.readable() == set(damaged.episodes) - {(0, 3)}


def test_a_second_repair_has_nothing_to_do(
    damaged: Sound, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(damaged.path)])
    capsys.readouterr()
    before = tree(damaged.path)
    assert main([str(damaged.path)]) == 0
    assert capsys.readouterr().out == f"{damaged.path}: nothing to repair\n"
    assert tree(damaged.path) == before


def test_json_tells_the_report(damaged: Sound, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(damaged.path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["dry_run"], told["episodes_lost"]) == (False, 1)
    assert [each["kind"] for each in told["actions"]] == ["void", "derive"]
    assert told["actions"][0]["ordinals"] == [3]


def test_inspect_tells_what_is_left(damaged: Sound, capsys: pytest.CaptureFixture[str]) -> None:
    from pipeline.inspect import main as inspect

    main([str(damaged.path)])
    capsys.readouterr()
    inspect([str(damaged.path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["episodes"] == len(damaged.episodes) - 1
    assert told["problems"] == []


def test_episodes_of_segments_that_are_set_aside_are_counted(
    damaged: Sound, capsys: pytest.CaptureFixture[str]
) -> None:
    """By their columns where the log is gone, and the table as well."""
    damaged.paths.log(1).unlink()
    count = sum(1 for segment, _ in damaged.episodes if segment == 1)
    assert main([str(damaged.path), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == (f"segment 000001: move all of it to quarantine/000001.* ({count} episodes)")
    both = f"1 episode would be taken out, {count} episodes would be set aside by `sharpwave"
    assert lines[2].startswith(both)
    (damaged.paths.segment(1) / "kind" / "zarr.json").unlink()
    main([str(damaged.path)])
    assert "nobody knows how many episodes of 1 segment set aside" in capsys.readouterr().out


def test_checkpoints_beside_the_store_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = make_sound(tmp_path / "run" / "store")
    flip(column_file(sound, 0, "reward").path, row_at(sound, 0, "reward", 0))
    main([str(tmp_path / "run"), "--dry-run"])
    assert capsys.readouterr().err == ""
    (tmp_path / "run" / "checkpoints").mkdir()
    (tmp_path / "run" / "checkpoints" / "last.ckpt").touch()
    main([str(tmp_path / "run"), "--dry-run"])
    err = capsys.readouterr().err
    assert err.startswith(f"warning: checkpoints of {tmp_path / 'run'} may name episodes")
    assert f"sharpwave train --offline {sound.path} --name=" in err
