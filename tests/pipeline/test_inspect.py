from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage
from pipeline.collect import main as collect
from pipeline.inspect import main
from pipeline.stored_run import StoredRun
from pipeline.summary import Spread, summarize
from pipeline.summary_draws import draw_rule
from pipeline.summary_table import byte_text
from storage.errors import ConfigError, StoreNotFoundError
from storage.replay.schemes.priority_settings import PRIORITY_PRESETS
from tests.pipeline.conftest import Command, run_in, small
from tests.storage.zoo import play, tiny_spec
from training.checkpoints.checkpoint_file import read_checkpoint
from training.checkpoints.plain_state import as_arrays
from training.config import EnvironmentConfig, ReplayConfig, RunConfig
from training.config_file import save_config


def test_json_tells_what_the_store_tells(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run / "store"), "--json"])
    told = json.loads(capsys.readouterr().out)
    with storage.open(run / "store") as store:
        table = store.episodes.to_pandas()
        columns = [column.name for column in store.schema.columns]
    assert told["steps"] == 1100 == table["length"].sum()
    assert told["episodes"] == len(table) == sum(told["endings"].values())
    assert told["rows"] == 1100 + len(table)
    whole = table["return"][table["ending"] != "cut"]
    assert len(whole) == len(table) - 1
    assert told["returns"]["mean"] == pytest.approx(whole.mean())
    assert told["returns"]["last_20_mean"] == pytest.approx(whole[-20:].mean())
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
    assert overlay["folder"] is None
    assert overlay["priorities"] is None


@pytest.fixture(scope="module")
def prioritized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs/pser, and runs/per and runs/far which learn from its store."""
    folder = tmp_path_factory.mktemp("prioritized")
    words = ("--replay.scheme=pser", "--replay.window=400", "--loop.steps=900", "--name=pser")
    run_in(folder, "train", *small(*words, "--evaluation.episodes=0"))
    for name, forget, alpha in (("per", "oldest", 0.8), ("far", "most_far", 0.6)):
        own = small("--loop.steps=64", f"--name={name}", "--evaluation.episodes=0")
        scheme = ("--replay.scheme=per", f"--replay.priorities.alpha={alpha}")
        words = (*own, *scheme, f"--replay.forget={forget}", "--offline=runs/pser/store")
        run_in(folder, "train", *words)
    return folder


def told(*words: object, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    main([*map(str, words), "--json"])
    overlays: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["overlays"]
    return overlays


def kept_window(run: Path, kind: str) -> dict[tuple[int, int], tuple[float, int]]:
    """Priority and draws of each step of the window, as the last checkpoint has them."""
    view = as_arrays(read_checkpoint(run / "checkpoints/last.ckpt")[kind]["view"])
    found, at = {}, 0
    for segment, _, start, length in view["episodes"]:
        for t in range(length):
            columns = (view["overlay"][name][at + t] for name in ("priority", "draw_count"))
            found[int(segment), int(start + t)] = tuple(columns)
        at += length + 1
    return found


def check_top(listed: list[dict[str, Any]], window: Any, alpha: float) -> None:
    """Ten steps in the order of priority, drawn in proportion to p^alpha."""
    total = sum(float(p) ** alpha for p, _ in window.values() if p > 0)
    largest = sorted((float(p) for p, _ in window.values()), reverse=True)[:10]
    assert [each["priority"] for each in listed] == largest
    for each in listed:
        priority, draws = window[each["segment"], each["row"]]
        assert each["drawn"] == draws
        assert each["probability"] == pytest.approx(float(priority) ** alpha / total, rel=1e-9)


@pytest.mark.parametrize("place", ["runs/pser", "runs/pser/store"])
def test_a_run_s_steps_are_told_by_its_own_settings(
    prioritized: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    monkeypatch.chdir(prioritized)
    (priorities,) = (each["priorities"] for each in told(place, capsys=capsys))
    window = kept_window(Path("runs/pser"), "OnlineExperience")
    assert priorities["rule"] == {
        "exponent": 0.6,
        "source": "by pser/config.yaml",
        "window": 400,
    }
    assert priorities["steps"] == len(window) < 900
    check_top(priorities["top"], window, 0.6)
    assert {each["drawn"] for each in priorities["top"]} != {0}
    with storage.open("runs/pser/store") as store:
        for each in priorities["top"]:
            record = store.episode(each["episode"]).record
            assert record.segment == each["segment"]
            assert record.start + each["step"] == each["row"]
            assert each["step"] < record.length


def test_alpha_is_the_one_asked_for_the_run_s_or_the_default_and_says_so(
    prioritized: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(prioritized)
    (asked,) = (each["priorities"] for each in told("runs/pser", "--alpha=1", capsys=capsys))
    assert asked["rule"]["source"] == "as given by --alpha"
    check_top(asked["top"], kept_window(Path("runs/pser"), "OnlineExperience"), 1.0)
    shutil.copytree("runs/pser/store", tmp_path / "alone.store")
    (alone,) = (each["priorities"] for each in told(tmp_path / "alone.store", capsys=capsys))
    assert alone["rule"]["exponent"] == 0.6
    assert alone["rule"]["window"] is None
    assert "the default since no prioritized run's config.yaml" in alone["rule"]["source"]
    assert alone["steps"] > asked["steps"]
    shutil.copytree("runs/pser", tmp_path / "damaged")
    (tmp_path / "damaged/config.yaml").write_text("replay: [")
    (damaged,) = (each["priorities"] for each in told(tmp_path / "damaged", capsys=capsys))
    assert "the default" in damaged["rule"]["source"]
    for wrong, words in (("1.5", r"1\.5 must lie in \[0, 1\]"), ("x", "'x' is no number")):
        with pytest.raises(ConfigError, match=f"--alpha: {words}"):
            main(["runs/pser", f"--alpha={wrong}"])


@pytest.mark.parametrize(("name", "alpha", "window"), [("per", 0.8, 1000), ("far", 0.6, None)])
def test_a_run_that_learns_from_a_store_tells_its_own_overlay(
    prioritized: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    alpha: float,
    window: int | None,
) -> None:
    monkeypatch.chdir(prioritized)
    collector, own = told(f"runs/{name}", capsys=capsys)
    assert (collector["folder"], own["folder"]) == (None, f"runs/{name}")
    assert collector["priorities"]["rule"]["source"] == "by pser/config.yaml"
    check_top(
        collector["priorities"]["top"], kept_window(Path("runs/pser"), "OnlineExperience"), 0.6
    )
    rule = own["priorities"]["rule"]
    assert rule["source"] == f"by {name}/config.yaml"
    assert (rule["exponent"], rule["window"]) == (alpha, window)
    check_top(own["priorities"]["top"], kept_window(Path("runs", name), "OfflineExperience"), alpha)
    assert own["drawn"] == 64 * 16
    main([f"runs/{name}"])
    text = capsys.readouterr().out
    where = f"of {own['priorities']['steps']} steps of the store with a priority, in the window or"
    assert (where in " ".join(text.split())) == (window is None)
    assert f"overlay main in runs/{name}: of 900 steps" in text


def test_priorities_that_hold_alpha_already_are_drawn_in_proportion(tmp_path: Path) -> None:
    config = RunConfig(
        EnvironmentConfig("Hopper-v5"),
        replay=ReplayConfig(scheme="pser", priorities=PRIORITY_PRESETS["dopamine"]),
    )
    save_config(config, tmp_path / "config.yaml")
    stored = StoredRun.at(tmp_path)
    rule = draw_rule(stored, "main", None)
    assert (rule.exponent, rule.window) == (1.0, 2**18)
    assert rule.source.endswith("config.yaml, whose priorities hold alpha 0.5 already")
    assert draw_rule(stored, "other", None).source.startswith("the default")
    priority = np.array([3, 0.0, -0.0, 1, 9], np.float32)
    drawable = np.array([True, True, True, True, False])
    assert rule.probabilities(priority, drawable).tolist() == [0.75, 0, 0, 0.25, 0]
    flat = dataclasses.replace(rule, exponent=0.0)
    assert flat.probabilities(priority, drawable).tolist() == [0.5, 0, 0, 0.5, 0]


@pytest.mark.parametrize("width", [80, 100])
def test_steps_by_priority_for_people(
    prioritized: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    width: int,
) -> None:
    monkeypatch.chdir(prioritized)
    monkeypatch.setenv("COLUMNS", str(width))
    main(["runs/pser", "--top=3"])
    text = capsys.readouterr().out
    assert "probability: p^0.6 over its sum" in text
    assert "in the window of 400" in text
    assert "exponent by pser/config.yaml" in text
    assert max(len(line) for line in text.splitlines()) <= width
    (head,) = [i for i, line in enumerate(text.splitlines()) if "times drawn" in line]
    lines = text.splitlines()[head + 2 : head + 6]
    assert [bool(line.strip()) for line in lines] == [True, True, True, False]


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
    priorities = summary.overlays[0].priorities
    assert priorities is not None
    (first,) = priorities.top
    assert priorities.steps == 2
    assert (first.segment, first.row, first.episode, first.step) == (info.id, row, 1, 2)
    assert (first.priority, first.probability) == (3.0, pytest.approx(3**0.6 / (3**0.6 + 1)))


def test_an_episode_has_the_number_that_the_store_gives_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also in a later segment, which begins its own count."""
    collect(["InvertedPendulum-v5", "--steps=60", "--lanes=2", f"--store={tmp_path / 'two'}"])
    with storage.open(tmp_path / "two", mode="r+") as store:
        first, second = store.segments
        record = store.records(second.id)[1]
        row = int(record["start"]) + 1
        columns = store.overlay(mode="r+").segment(second.id, second.rows)
        columns.array("priority")[row] = 3.0
        number = first.episodes + 1
        assert store.episode(number).record.start == record["start"]
    capsys.readouterr()
    (overlay,) = told(tmp_path / "two", capsys=capsys)
    (listed,) = overlay["priorities"]["top"]
    assert (listed["segment"], listed["row"]) == (second.id, row)
    assert (listed["episode"], listed["step"]) == (number, 1)
    main([str(tmp_path / "two")])
    (line,) = [x for x in capsys.readouterr().out.splitlines() if f"{second.id:06d}/{row} " in x]
    assert line.split()[1:3] == [str(number), "1"]


def test_table_for_people(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run)])  # a run's folder stands for its store
    text = capsys.readouterr().out
    assert "1,100 steps in " in text
    assert "InvertedPendulum-v5, format version 1" in text
    assert "actions by behaviour: 1,100 gaussian\n" in text
    assert "raw_action" in text
    assert "overlay main: of 1,100 steps of the whole store" in text
    assert "none has a priority" in text
    assert "not verified; `sharpwave verify` reads every byte\n" in text
    assert "\x1b" not in text


def test_a_segment_that_nobody_writes_is_not_called_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with storage.create(tmp_path / "s", tiny_spec()) as store, store.writer() as writer:
        play(writer, 0, 0)
    main([str(tmp_path / "s")])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "unsealed" in line]
    assert row.split()[0] == "000000"
    main([str(tmp_path / "s"), "--json"])
    told = capsys.readouterr().out
    assert "not verified" not in told
    assert json.loads(told)["segments"][0]["sealed"] is False


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


def test_a_folder_of_stores_tells_where_they_are(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with storage.open(run / "store") as store:
        spec = store.env_spec
    monkeypatch.chdir(tmp_path)
    for n in (2, 3, 4, 5):
        storage.create(f"study/memories/{n:02d}.store", spec).close()
    for place in ("study", "study/memories"):
        with pytest.raises(StoreNotFoundError) as error:
            main([place])
        message = str(error.value)
        assert message.startswith(f"{place} is no store, but holds 4: ")
        assert "study/memories/02.store, study/memories/03.store, study/memories/04.store, …" in (
            message
        )
        assert message.endswith(
            "; give one of them, as `sharpwave inspect study/memories/05.store`"
        )


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
