"""What a run is said to take, against what it takes."""

from __future__ import annotations

import dataclasses
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.collect import main as collect
from pipeline.forecast import Forecast, announce_run, check, forecast_run
from storage.errors import ConfigError, DiskFullError
from storage.machine import descriptor_limit, map_limit
from tests.training.tiny import run, tiny_config
from training.assembly import make_agent
from training.environments.environment import describe_recorded
from training.preflight import CheckedRun, check_run


def foretold(config: Any) -> Forecast:
    checked = check_run(config)
    agent = make_agent(checked.config, checked.spec)
    return forecast_run(checked, sum(4 * each.numel() for each in agent.parameters()))


def sizes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_a_run_takes_about_the_disk_that_was_foretold(tmp_path: Path) -> None:
    """Short episodes have more closing rows than anybody knows before."""
    config = tiny_config(steps=6000, ratio=0.1, window=500)
    config = dataclasses.replace(config, loop=dataclasses.replace(config.loop, round_steps=64))
    run(config, tmp_path)
    assert sizes(tmp_path) == pytest.approx(foretold(config).disk, rel=0.25)


def test_a_game_takes_a_frame_a_step_on_the_disk() -> None:
    config = tiny_config(environment="Atari/Pong", steps=10**6, retention="keep")
    checked = CheckedRun(config, *describe_recorded(config.environment))
    foreseen = forecast_run(checked, parameters=0)
    assert 10**6 * 84 * 84 < foreseen.disk < 1.2 * 10**6 * 84 * 84


def test_retention_bounds_the_disk_of_a_long_run() -> None:
    disk = [
        foretold(tiny_config(steps=steps, retention=retention)).disk
        for retention in ("keep", "drop")
        for steps in (10**6, 10**7)
    ]
    assert disk[1] > 9 * disk[0]
    assert disk[2] == disk[3] < disk[0] / 10


def test_memory_grows_with_the_window_and_the_tree() -> None:
    foretold(tiny_config())  # takes memory of its own when it is first called
    steps = 2**24  # as many as the larger window, so that its ring need not double
    plain, wide = (foretold(tiny_config(steps=steps, window=2**k)).memory for k in (10, 24))
    tree = foretold(tiny_config(steps=steps, window=2**24, scheme="per")).memory
    assert wide - plain == pytest.approx(2**24 * (24 + 3 * 33), rel=0.05)
    assert tree - wide == pytest.approx(21 * 2**24, rel=0.05)


def test_no_room_for_the_first_step_is_refused_before_it(small_disk: Path) -> None:
    """pytorch/rl: pre-allocation of more than there is kills the process."""
    full = Forecast(disk=2**40, first=2**30)
    with pytest.raises(DiskFullError, match=r"first step needs 1\.0 GiB .* free"):
        check(full, small_disk / "run")


def test_too_little_for_the_whole_run_is_a_warning(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(Forecast(disk=2**40, first=1000, memory=1), small_disk / "run")
    err = capsys.readouterr().err
    assert "the disk will fill up before the end" in err
    assert "replay.retention=drop" in err
    check(Forecast(disk=2**20, first=1000, memory=2**60), small_disk / "run")
    assert "lower replay.window" in capsys.readouterr().err


def test_maps_and_files_are_held_against_the_system_s_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maps, files = map_limit(), descriptor_limit()
    assert maps is not None
    check(Forecast(1, 1, maps=maps // 2, files=files // 2), tmp_path)
    assert capsys.readouterr().err == ""
    check(Forecast(1, 1, maps=maps // 2 + 1, files=files // 2 + 1), tmp_path)
    err = capsys.readouterr().err
    assert "lower replay.window, or raise the limit (sysctl vm.max_map_count)" in err
    assert "lower the number of lanes, or raise the limit (ulimit -n)" in err
    with pytest.raises(ConfigError, match="memory maps"):
        check(Forecast(1, 1, maps=maps + 1), tmp_path)


def test_a_run_s_own_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = check_run(tiny_config())
    announce_run(checked, make_agent(checked.config, checked.spec), tmp_path / "run")
    out = capsys.readouterr().out
    assert out.startswith("It takes some ")
    assert " of the disk, " in out
    assert " of memory, " in out


def test_too_many_lanes_for_the_open_files_are_refused(tmp_path: Path) -> None:
    """A process of its own, so that its limit is its own."""
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64));"
        "import pipeline.cli; sys.exit(pipeline.cli.main(sys.argv[1:]))"
    )
    words = ["collect", "Pendulum-v1", "--steps=10", f"--store={tmp_path / 's'}", "--lanes=40"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "ulimit -n" in done.stderr
    assert "Traceback" not in done.stderr


def test_durability_reaches_the_writer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["Pendulum-v1", "--steps=20", f"--store={tmp_path / 's'}"]
    with pytest.raises(ConfigError, match="durability"):
        collect([*words, "--durability=everything"])
    with pytest.raises(ConfigError, match="fsync"):
        collect([*words, "--sync_episodes=3"])
    assert not (tmp_path / "s").exists()
    collect([*words, "--durability=fsync", "--sync_episodes=2", "--sync_seconds=1.5"])
    assert "20 steps in 1 episode" in capsys.readouterr().out
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == descriptor_limit()
