from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import storage
from pipeline.inspect import main
from pipeline.summary import Spread, summarize
from pipeline.summary_table import byte_text
from storage.errors import StoreNotFoundError
from tests.pipeline.conftest import Command


def test_json_tells_what_the_store_tells(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run / "store"), "--json"])
    told = json.loads(capsys.readouterr().out)
    with storage.open(run / "store") as store:
        table = store.episodes.to_pandas()
        columns = [column.name for column in store.schema.columns]
    assert told["steps"] == 1100 == table["length"].sum()
    assert told["episodes"] == len(table) == sum(told["endings"].values())
    assert told["rows"] == 1100 + len(table)
    assert told["returns"]["mean"] == pytest.approx(table["return"].mean())
    assert told["returns"]["last_20_mean"] == pytest.approx(table["return"][-20:].mean())
    assert told["lengths"]["largest"] == table["length"].max()
    assert [column["name"] for column in told["columns"]] == columns
    assert told["segments"][0]["run"] == "small"
    assert told["segments"][0]["begun"].startswith("20")


def test_the_overlay_s_far_fraction_is_the_run_s(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(run / "store"), "--json"])
    (overlay,) = json.loads(capsys.readouterr().out)["overlays"]
    assert overlay["name"] == "main"
    assert overlay["steps"] == 1100
    assert overlay["drawn"] == 900 * 16
    assert overlay["far_fraction"] == pytest.approx(overlay["far_steps"] / 1100)
    assert overlay["top_priorities"] == []


def test_steps_by_priority(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "store", tmp_path / "store")
    with storage.open(tmp_path / "store", mode="r+") as store:
        info = store.segments[0]
        second = store.records(info.id)[1]
        row = int(second["start"]) + 2
        overlay = store.overlay(mode="r+")
        priority = overlay.segment(info.id, info.rows).array("priority")
        priority[row], priority[0] = 3.0, 1.0
        del priority
        summary = summarize(store, top=1)
    (first,) = summary.overlays[0].top_priorities
    assert (first.segment, first.row, first.episode, first.step) == (info.id, row, 1, 2)
    assert (first.priority, first.share) == (3.0, 0.75)


def test_table_for_people(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run)])  # a run's folder stands for its store
    text = capsys.readouterr().out
    assert "1,100 steps in " in text
    assert "InvertedPendulum-v5, format version 1" in text
    assert "actions by behaviour: 1,100 gaussian\n" in text
    assert "raw_action" in text
    assert "overlay main: of 1,100 steps of the whole store" in text
    assert "none has a priority" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [80, 100])
def test_narrow_terminals_cut_no_word(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    main([str(run)])
    words = set(capsys.readouterr().out.split())
    monkeypatch.setenv("COLUMNS", str(width))
    main([str(run)])
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert {word for word in text.split() if "──" not in word} <= words
    assert max(len(line) for line in lines) <= width


def test_behaviour_is_counted_by_kind(tmp_path: Path) -> None:
    from pipeline.collect import main as collect

    path = tmp_path / "random.store"
    collect(["InvertedPendulum-v5", "--steps=60", f"--store={path}"])
    with storage.open(path) as store:
        summary = summarize(store)
    assert summary.behaviours == {
        "unknown": 0,
        "gaussian": 0,
        "categorical": 0,
        "uniform": 60,
        "nominal gaussian": 0,
    }


def test_a_mistyped_store_gets_the_nearest_name(run: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="no store runs/smal, did you mean 'small'"):
        main(["runs/smal"])


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="is no Sharpwave store"):
        main([str(tmp_path)])


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_problem_is_told_once(
    run: Path, tmp_path: Path, sharpwave: Command, options: tuple[str, ...]
) -> None:
    shutil.copytree(run / "store", tmp_path / "torn")
    (tmp_path / "torn" / "log" / "000000.log").unlink()
    done = sharpwave("inspect", "torn", *options, COLUMNS="500")
    assert (done.stdout + done.stderr).count("has no log") == 1
    assert done.stderr == ""


def test_an_empty_store_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    with storage.open(run / "store") as store:
        spec = store.env_spec
    storage.create(tmp_path / "empty", spec).close()
    main([str(tmp_path / "empty")])
    assert "0 steps in 0 episodes, 0 segments" in capsys.readouterr().out
    main([str(tmp_path / "empty"), "--json"])
    assert json.loads(capsys.readouterr().out)["returns"] is None


def test_no_learning_library_is_loaded(run: Path) -> None:
    program = (
        "import sys; from pipeline.cli import main\n"
        f"main(['inspect', {str(run / 'store')!r}])\n"
        "heavy = {'torch', 'lightning', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_spread() -> None:
    spread = Spread.of(np.arange(30))
    assert spread is not None
    assert (spread.smallest, spread.median, spread.largest) == (0.0, 14.5, 29.0)
    assert spread.last_20_mean == 19.5
    assert Spread.of(np.empty(0)) is None


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (3 * 2**30, "3.0 GiB")]
)
def test_byte_text(size: int, text: str) -> None:
    assert byte_text(size) == text
