from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

import storage
from pipeline.cliffwalk import main
from pipeline.cliffwalk.folder import CliffwalkFolder
from storage.errors import ConfigError

SMALL = ["--n=2-4", "--seeds=3", "--processes=1"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small study; not to be changed."""
    folder = tmp_path_factory.mktemp("cliffwalk") / "study"
    main([*SMALL, f"--folder={folder}"])
    return folder


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def rows(path: Path) -> list[dict]:
    return pyarrow.parquet.read_table(path).to_pylist()


def test_a_study_is_tables_pictures_and_memories(played: Path) -> None:
    assert sorted(os.listdir(played)) == [
        "curves.parquet",
        "memories",
        "mse.png",
        "runs.csv",
        "runs.parquet",
        "summary.csv",
        "summary.parquet",
        "updates.png",
    ]
    assert sorted(os.listdir(played / "memories")) == ["02.store", "03.store", "04.store"]
    for name in ("mse.png", "updates.png"):
        assert png_size(played / name) == (1560, 728)


def test_a_row_is_a_trial(played: Path) -> None:
    found = rows(played / "runs.parquet")
    assert len(found) == 3 * 3 * (2 + 2 + 2 + 2)
    assert all(row["converged"] and row["mean_squared_error"] < 1e-3 for row in found)
    assert all(row["goal_update"] >= 1 for row in found)
    assert all(row["updates_after_goal"] == row["updates"] - row["goal_update"] for row in found)
    assert {row["seed"] for row in found} == {0, 1, 2}
    pser = next(row for row in found if row["sampler"] == "pser-add")
    assert (pser["decay"], pser["window"], pser["eta"]) == (0.4, 5, 0.7)
    uniform = next(row for row in found if row["sampler"] == "uniform")
    assert {uniform[name] for name in ("initial", "alpha", "epsilon", "eta", "window")} == {None}


def test_the_csv_files_hold_the_same(played: Path) -> None:
    for name in ("runs", "summary"):
        parquet = pyarrow.parquet.read_table(played / f"{name}.parquet")
        csv = pyarrow.csv.read_csv(played / f"{name}.csv")
        assert csv.column_names == parquet.column_names
        assert csv.column("n").to_pylist() == parquet.column("n").to_pylist()
        assert csv.num_rows == parquet.num_rows


def test_the_summary_has_medians_and_intervals(played: Path) -> None:
    found = rows(played / "summary.parquet")
    assert len(found) == 3 * 8
    runs = rows(played / "runs.parquet")
    for row in found:
        keys = ("n", "sampler", "initial", "eta")
        own = [run["updates"] for run in runs if all(run[key] == row[key] for key in keys)]
        assert len(own) == row["trials"] == row["converged"] == 3
        low, median, high = sorted(own)
        found_now = [row[f"updates_{name}"] for name in ("low", "median", "high")]
        assert found_now == [low, median, high]


def test_what_is_there_is_not_played_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--n=2-4", "--samplers=per,oracle", "--processes=1", f"--folder={tmp_path}/study"]
    main([*command, "--seeds=3", "--initial=max"])
    before = rows(tmp_path / "study/runs.parquet")
    capsys.readouterr()
    main([*command, "--seeds=3", "--initial=max"])
    assert "0 trials to play, 18 are in" in capsys.readouterr().out
    assert rows(tmp_path / "study/runs.parquet") == before
    main([*command, "--seeds=4", "--initial=epsilon,max"])
    assert "18 trials to play, 18 are in" in capsys.readouterr().out
    after = rows(tmp_path / "study/runs.parquet")
    assert after[: len(before)] == before
    assert len(after) == len(before) + 18


def test_from_other_values_small_initial_priorities_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--n=6", "--seeds=6", "--processes=1", "--learner=linear", "--start=normal"]
    main([*words, "--samplers=uniform,per", f"--folder={tmp_path}/study"])
    (warning,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("Warning")]
    found = {x["initial"]: x["updates_median"] for x in rows(tmp_path / "study/summary.parquet")}
    assert found["epsilon"] > 3 * found[None] > 9 * found["max"]
    assert warning == (
        "Warning: with small initial priorities, PER, from 1e-06, linear, N(0, 0.1) needs "
        f"{found['epsilon']:,.0f} updates at n = 6, {found['epsilon'] / found[None]:.1f} times as "
        f"many as uniform replay ({found[None]:,.0f}). From max it needs {found['max']:,.0f}."
    )


def test_what_comes_is_told_before_it_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--n=2-5", "--seeds=1", "--processes=1", "--samplers=per", f"--folder={tmp_path}/study"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("8 trials to play, 0 are in ")
    assert lines[1] == "making the memories of n = 2, 3, 4, 5 first, 60 episodes"
    (shown,) = [line for line in lines if line.startswith("The tables show")]
    assert shown.startswith("The tables show n = 3, 4 and 5 of 4 numbers of states; ")
    main(["--n=2-5", "--seeds=2", "--processes=1", "--samplers=per", f"--folder={tmp_path}/study"])
    assert "making" not in capsys.readouterr().out


def test_the_warning_stands_below_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = f"--folder={tmp_path}/study"
    main(["--n=6", "--seeds=5", "--processes=1", "--samplers=per,pser-max", folder])
    out = capsys.readouterr().out
    assert "| PSER MAX, ρ 0.4, W 5, η 0.7, from max " in out
    (warning,) = [line for line in out.splitlines() if line.startswith("Warning")]
    found = rows(tmp_path / "study/summary.parquet")
    (gentle,) = [x for x in found if (x["sampler"], x["initial"]) == ("pser-max", "epsilon")]
    assert warning.endswith(f". From 1e-06 it needs {gentle['updates_median']:,.0f}.")
    assert "with maximum initial priorities, PSER MAX, ρ 0.4, W 5, η 0.7, from max" in warning
    assert "times as many as PER" in warning


def test_in_processes_of_its_own_it_finds_the_same(sharpwave, played: Path, tmp_path: Path) -> None:
    options = ["--n=2-4", "--seeds=3", "--samplers=uniform,pser-max", "--processes=2"]
    done = sharpwave("cliffwalk", *options)
    assert done.stderr == ""
    assert os.listdir(tmp_path / "runs") == ["cliffwalk"]
    found = {key(row) for row in rows(tmp_path / "runs/cliffwalk/runs.parquet")}
    assert len(found) == 27
    assert found <= {key(row) for row in rows(played / "runs.parquet")}


def key(row: dict) -> tuple:
    return tuple(value for name, value in row.items() if name != "seconds")


def test_the_memories_are_ordinary_stores(played: Path) -> None:
    with storage.open(played / "memories/04.store") as store:
        assert (store.n_steps, store.n_episodes) == (30, 16)


def test_theorem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--theorem", "--n=2-5", "--decay=0.4,0.8", "--repeats=400", f"--folder={tmp_path}/study"])
    found = rows(tmp_path / "study/theorem.parquet")
    assert len(found) == 4 * (3 + 2 * 2)
    assert sum(row["within_3"] for row in found) >= len(found) - 1
    expected = {(row["n"], row["process"]): row["expected"] for row in found}
    assert expected[4, "uniform"] == 56.25
    assert expected[4, "PER"] == 27.25
    assert expected[4, "PER, error before the update"] == 30.25
    assert expected[4, "PSER, ρ 0.4"] == pytest.approx(4.96, abs=1e-12)
    assert expected[4, "PSER, ρ 0.8, W 20"] == pytest.approx(6.24, abs=1e-12)
    assert png_size(tmp_path / "study/theorem.png") == (1040, 780)
    out = capsys.readouterr().out
    assert "The tables show n = 3, 4 and 5 of 4 numbers of states" in out
    assert "of 28 means of 400 simulations are within 3 standard errors" in out
    assert "| PSER, ρ 0.4, W 5 " in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--n=1"], "1 states are not to be had, only 2 to 20"),
        (["--n=2-21"], "21 states are not to be had"),
        (["--n=8-4"], "'8-4' counts down; write 4-8"),
        (["--n=four"], "'four' is no number of states"),
        (["--samplers=par"], "there is no 'par', did you mean 'per'?; choose from uniform"),
        (["--initial=most"], "there is no 'most'"),
        (["--eta=1.2"], "1.2 is out of range; give numbers from 0 to 1"),
        (["--decay=1"], "1 is out of range; give numbers between 0 and 1"),
        (["--alpha=x"], "'x' is no number"),
        (["--alpha=nan"], "nan is out of range"),
        (["--epsilon=0"], "0 is out of range"),
        (["--seeds=0"], "0 is too small"),
        (["--processes=0"], "0 is too small"),
        (["--learner=deep"], "invalid choice: 'deep'"),
        (["--sampler=per"], "no option --sampler, did you mean '--samplers'?"),
        (["--theorem", "--seeds=3"], "--seeds is not for --theorem; leave it out"),
        (["--repeats=3"], "--repeats is for --theorem alone; leave it out"),
    ],
)
def test_bad_requests(words: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        main([*words, f"--folder={tmp_path}/study"])
    assert message in str(error.value)
    assert not (tmp_path / "study").exists()


def test_its_help_is_light() -> None:
    program = (
        "import sys; from pipeline.cli import main; main(['cliffwalk', '--help'])\n"
        "heavy = {'torch', 'lightning', 'pyarrow', 'matplotlib', 'gymnasium', 'zarr'}\n"
        "sys.exit(repr(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--theorem" in done.stdout


def test_somebody_else_s_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("a run's")
    with pytest.raises(ConfigError, match=r"holds config\.yaml, so it is no folder of a Blind"):
        main([*SMALL, f"--folder={tmp_path}"])
    with pytest.raises(ConfigError, match="is a file; choose another --folder"):
        main([*SMALL, f"--folder={tmp_path}/config.yaml"])
    assert os.listdir(tmp_path) == ["config.yaml"]


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs.parquet").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"runs\.parquet cannot be read"):
        main([*SMALL, f"--folder={tmp_path}"])
    assert (tmp_path / "runs.parquet").read_bytes() == b"nothing"


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        CliffwalkFolder.at(tmp_path).held(),
        pytest.raises(ConfigError, match="another process plays in"),
    ):
        main([*SMALL, f"--folder={tmp_path}"])


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupt_keeps_what_is_finished(tmp_path: Path, processes: int) -> None:
    child = started(tmp_path, processes)
    os.killpg(child.pid, signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130, stderr
    kept = rows(tmp_path / "runs/cliffwalk/runs.parquet")
    assert 1 <= len(kept) < 10000
    assert f"{len(kept):,} of 10,000 trials are in runs/cliffwalk" in stderr
    assert "the same command plays the rest" in stderr
    assert "Traceback" not in stderr
    assert len(CliffwalkFolder.at(tmp_path / "runs/cliffwalk").read()) == len(kept)
    assert_gone(child.pid)


def test_a_killed_worker_is_told(tmp_path: Path) -> None:
    child = started(tmp_path, processes=2)
    os.kill(workers_of(child.pid)[0], signal.SIGKILL)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 2
    (line,) = stderr.splitlines()
    assert line.startswith("sharpwave: error: a process that played trials was killed")
    assert rows(tmp_path / "runs/cliffwalk/runs.parquet")
    assert_gone(child.pid)


def started(folder: Path, processes: int) -> subprocess.Popen[str]:
    """A long study in `folder`, of which some trials are finished."""
    options = ["--n=6", "--seeds=5000", "--samplers=per", f"--processes={processes}"]
    child = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "cliffwalk", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (folder / "runs/cliffwalk/runs.parquet").exists():
        assert child.poll() is None
        time.sleep(0.02)
    return child


def workers_of(pid: int) -> list[int]:
    """Children of a process that multiprocessing spawned to work."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    commands = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in listed}
    return [child for child, command in commands.items() if b"spawn_main" in command]


def assert_gone(group: int) -> None:
    """No process of the group is left, once multiprocessing's own tracker has seen the end."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("processes are left")
