from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import storage
from pipeline.verify import main
from storage.errors import ConfigError, StoreNotFoundError
from tests.pipeline.conftest import run_in
from tests.storage.damage import Sound, column_file, flip, make_sound, row_at


@pytest.fixture
def sound(tmp_path: Path) -> Sound:
    return make_sound(tmp_path / "store")


def test_a_sound_store_gives_0_and_one_line(
    sound: Sound, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(sound.path)]) == 0
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    assert line.startswith("4 segments, 24 episodes, 120 steps: 2.")
    assert line.endswith("; sound")
    assert err == ""


def test_damage_gives_1_and_a_line_where_it_is_with_a_remedy(
    sound: Sound, capsys: pytest.CaptureFixture[str]
) -> None:
    file = column_file(sound, 1, "reward").path
    flip(file, row_at(sound, 1, "reward", 0))
    assert main([str(sound.path), "--workers=1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "error: steps.zarr/000001/reward/c.0: its bytes are not those that were committed "
        "(episode 0) [checksum]"
    )
    assert "sharpwave repair" in lines[1]
    assert "damaged (1 error)" in lines[-1]
    assert len(lines) == 3


def test_many_faults_of_one_kind_are_told_in_few_lines(
    sound: Sound, capsys: pytest.CaptureFixture[str]
) -> None:
    for column in sound.schema.columns:
        flip(column_file(sound, 0, column.name).path, 5)
    assert main([str(sound.path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[5].strip() == "… and 5 more files likewise (--json lists all)"
    assert len(lines) == 8


def test_warnings_alone_give_0(sound: Sound, capsys: pytest.CaptureFixture[str]) -> None:
    sound.paths.description.unlink()
    assert main([str(sound.path)]) == 0
    assert "; sound (1 warning)" in capsys.readouterr().out


def test_json_tells_the_whole_report(sound: Sound, capsys: pytest.CaptureFixture[str]) -> None:
    flip(sound.paths.log(2), 33)
    assert main([str(sound.path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    report = storage.verify(sound.path).to_json()
    del told["seconds"], report["seconds"]
    assert told == report


def test_overlays_can_be_left_out(sound: Sound, capsys: pytest.CaptureFixture[str]) -> None:
    (sound.paths.overlays / "main.zarr" / "zarr.json").unlink()
    main([str(sound.path), "--no-overlays", "--json"])
    assert json.loads(capsys.readouterr().out)["warnings"] == 0
    main([str(sound.path), "--json"])
    assert json.loads(capsys.readouterr().out)["warnings"] == 1


def test_what_is_no_store_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with pytest.raises(StoreNotFoundError, match="did you mean 'store'"):
        main([str(tmp_path / "stoer")])
    with pytest.raises(StoreNotFoundError, match="no Sharpwave store"):
        main([str(tmp_path / "store")])
    with pytest.raises(ConfigError, match="too small"):
        main([str(tmp_path), "--workers=0"])
    done = run_in(tmp_path, "verify", "nowhere", code=2)
    assert done.stderr.count("\n") == 1


def test_a_run_s_folder_stands_for_its_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_sound(tmp_path / "run" / "store")
    assert main([str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.startswith("4 segments")


def test_neither_verb_loads_torch(sound: Sound) -> None:
    script = (
        "import sys, pipeline.cli as cli\n"
        "codes = cli.main(['verify', sys.argv[1]]), cli.main(['repair', sys.argv[1]])\n"
        "heavy = {'torch', 'lightning', 'gymnasium.envs.mujoco'} & set(sys.modules)\n"
        "sys.exit(f'{codes} {heavy}' if heavy or any(codes) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(sound.path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_may_not_be_read_gives_2_unless_something_is_damaged(
    sound: Sound, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from storage.verification import raw_log
    from storage.verification.regular_files import CannotJudgeError

    opened = raw_log.open_for_reading

    def denied(path: Path) -> int:
        if path.name == "000001.log":
            raise CannotJudgeError(path, "Permission denied")
        return opened(path)

    monkeypatch.setattr(raw_log, "open_for_reading", denied)
    assert main([str(sound.path)]) == 2
    out = capsys.readouterr().out
    assert "log/000001.log: it cannot be read: Permission denied [not-readable]" in out
    assert "not all was judged (1 error)" in out
    flip(column_file(sound, 0, "reward").path, 5)
    assert main([str(sound.path)]) == 1


def test_remedies_do_not_promise_what_is_not_so(
    sound: Sound, capsys: pytest.CaptureFixture[str]
) -> None:
    """One short column keeps readers from all of its segment; a list of all episodes says so."""
    count = sum(1 for segment, _ in sound.episodes if segment == 1)
    file = column_file(sound, 1, "reward")
    with file.path.open("r+b") as opened:
        opened.truncate(file.offset)
    assert main([str(sound.path)]) == 1
    out = capsys.readouterr().out
    assert f"(all {count} episodes) [short-column]" in out
    assert "until then nothing of the segment can be read" in out
    assert "stay readable" not in out
