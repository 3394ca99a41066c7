from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import storage
from pipeline.collect import main
from pipeline.forecast import forecast_collection
from pipeline.learning_curve import read_learning_curve
from pipeline.progress_bar import progress_bar
from pipeline.summary import disk_use
from storage import BehaviourKind, Ending
from storage.errors import (
    CheckpointError,
    ConfigError,
    EnvironmentNotFoundError,
    NonFiniteError,
    SchemaMismatchError,
    StoreExistsError,
)
from tests.training.zoo import Drift
from training.environments.environment import describe_environment
from training.environments.environment_config import EnvironmentConfig


def collect(path: Path, *options: str, steps: int = 60) -> None:
    main(["InvertedPendulum-v5", f"--steps={steps}", f"--store={path}", *options])


def test_in_a_process_of_its_own(sharpwave, tmp_path: Path) -> None:
    done: subprocess.CompletedProcess[str] = sharpwave(
        "collect", "InvertedPendulum-v5", "--steps", 50, "--store", "pendulum.store", "--lanes=2"
    )
    assert done.stdout.splitlines()[-1] == "sharpwave inspect pendulum.store"
    assert "50 steps take up to" in done.stdout
    assert done.stderr == ""
    assert os.listdir(tmp_path) == ["pendulum.store"]
    with storage.open(tmp_path / "pendulum.store") as store:
        assert store.n_steps == 50
        assert len(store.segments) == 2
        kinds = store.columns["behaviour_kind"][:]
        assert set(kinds[store.columns["kind"][:] == 1].tolist()) == {BehaviourKind.UNIFORM}


def test_the_same_seed_gives_the_same_store(tmp_path: Path) -> None:
    for name, seed in [("a", 4), ("b", 4), ("c", 5)]:
        collect(tmp_path / name, f"--seed={seed}")
    assert storage.content_hash(tmp_path / "a") == storage.content_hash(tmp_path / "b")
    assert storage.content_hash(tmp_path / "a") != storage.content_hash(tmp_path / "c")


def test_an_existing_store_grows_by_other_seeds_only(tmp_path: Path) -> None:
    collect(tmp_path / "s")
    with pytest.raises(ConfigError, match="was collected with --seed=0 before"):
        collect(tmp_path / "s")
    collect(tmp_path / "s", "--seed=1", steps=30)
    with storage.open(tmp_path / "s") as store:
        assert store.n_steps == 90
        assert {segment.run for segment in store.segments} == {"collect-0", "collect-1"}


def test_the_last_episode_is_cut_as_truncated(tmp_path: Path) -> None:
    collect(tmp_path / "s", steps=1)
    with storage.open(tmp_path / "s") as store:
        (record,) = store.records(0)
        assert (record["length"], record["ending"]) == (1, Ending.CUT)
        assert bool(store.columns["truncated"][0])


def test_a_finished_collection_is_sealed_and_trimmed(tmp_path: Path) -> None:
    """No command grows its segments again: a later one gets segments of its own."""
    collect(tmp_path / "s", "--lanes=2")
    collect(tmp_path / "s", "--seed=1", steps=300)
    with storage.open(tmp_path / "s") as store:
        assert [info.sealed for info in store.segments] == [True] * 3
        for info in store.segments:
            size = (tmp_path / f"s/steps.zarr/{info.id:06d}/reward/c.0").stat().st_size
            assert size == 32768 + 8 * 256 * -(-info.rows // 256)


def test_one_of_a_thing_is_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["Pendulum-v1", f"--store={tmp_path / 's'}"]
    main([*words, "--steps=30"])
    assert f"30 steps in 1 episode are in {tmp_path / 's'} (" in capsys.readouterr().out
    main([*words, "--steps=1", "--seed=2"])
    out = capsys.readouterr().out
    assert "Pendulum-v1: 1 step takes up to" in out
    assert f"1 step in 1 episode is in {tmp_path / 's'} (" in out


@pytest.mark.parametrize(
    ("environment", "steps", "lanes"),
    [("InvertedPendulum-v5", 3000, 1), ("CartPole-v1", 200, 3), ("Pendulum-v1", 500, 1)],
)
def test_a_store_takes_no_more_than_was_announced(
    tmp_path: Path, environment: str, steps: int, lanes: int
) -> None:
    """Short episodes: logs, tables and metadata were left out, a third of all."""
    spec = describe_environment(EnvironmentConfig(environment))
    path = tmp_path / "s"
    main([environment, f"--steps={steps}", f"--lanes={lanes}", f"--store={path}"])
    with storage.open(path) as store:
        need = forecast_collection(store.schema, steps, lanes, spec.max_episode_steps).disk
    folders = sum(each.is_dir() for each in path.rglob("*")) * 4096
    assert disk_use(path)["total"] + folders < need < 2 * disk_use(path)["total"]


def test_lines_tell_how_far_it_is_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(400, "steps", interval=0.0) as show:
        show(100)
    assert capsys.readouterr().err.startswith("100 of 400 steps (25 %)  ")
    with progress_bar(400, "steps") as show:
        show(100)
    assert capsys.readouterr().err == ""


def test_a_trained_policy_collects(run: Path, tmp_path: Path) -> None:
    collect(tmp_path / "s", f"--policy={run}")
    with storage.open(tmp_path / "s") as store:
        steps = store.columns["kind"][:] == 1
        assert set(store.columns["behaviour_kind"][:][steps].tolist()) == {BehaviourKind.GAUSSIAN}
        assert store.columns["policy_update"][0] > 0


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["Hopper-v5", "--steps=0", "--store=s"], ConfigError, "--steps is 0"),
        (["Hopper-v5", "--steps=9", "--store=s", "--lanes=-1"], ConfigError, "--lanes is -1"),
        (["Hopper-v5", "--steps=9"], ConfigError, "something is missing"),
        (["--steps=9", "--store=s"], ConfigError, "something is missing"),
        (["A", "B", "--steps=9", "--store=s"], ConfigError, "one environment, not A, B"),
        (["Hopper-v5", "--step=9", "--store=s"], ConfigError, "did you mean '--steps'"),
        (["Hopper-v9", "--steps=9", "--store=s"], EnvironmentNotFoundError, "Hopper-v5"),
        (
            ["Hopper-v5", "--steps=9", "--store=s", "--policy=none.ckpt"],
            CheckpointError,
            "no checkpoint none.ckpt",
        ),
    ],
)
def test_bad_requests_leave_nothing(
    words: list[str],
    error: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        main(words)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(StoreExistsError, match="something is there"):
        collect(tmp_path)


def test_a_store_of_other_spaces_is_refused(tmp_path: Path) -> None:
    collect(tmp_path / "s")
    with pytest.raises(SchemaMismatchError, match="holds steps of InvertedPendulum-v5"):
        main(["Hopper-v5", "--steps=9", "--seed=1", f"--store={tmp_path / 's'}"])


def test_a_checkpoint_of_other_spaces_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="was made for InvertedPendulum-v5"):
        main(["Hopper-v5", "--steps=9", f"--policy={run}", f"--store={tmp_path / 's'}"])


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            ["Pendulum-v1"],
            ["Pendulum-v1", "--environment.kwargs={g: 3.0}"],
            "environment.kwargs {}.*3.0",
        ),
        (
            [
                "Pendulum-v1",
                "--environment.wrappers=[{class_path: ClipReward, kwargs: {min_reward: -1.0}}]",
            ],
            ["Pendulum-v1"],
            r"environment.wrappers .*ClipReward.*has \[\]",
        ),
        (["ZooDrift-v0"], ["tests.training.zoo:Drift"], "environment.id ZooDrift-v0.*Drift"),
    ],
)
def test_an_environment_made_otherwise_is_refused(
    first: list[str], second: list[str], message: str, tmp_path: Path
) -> None:
    """Same spaces, other rewards: nobody could tell the steps apart."""
    store = ["--steps=20", f"--store={tmp_path / 's'}"]
    main([*first, *store])
    before = storage.content_hash(tmp_path / "s")
    with pytest.raises(SchemaMismatchError, match=message):
        main([*second, *store, "--seed=1"])
    assert storage.content_hash(tmp_path / "s") == before


def test_a_wrapper_by_its_short_name_is_the_same(tmp_path: Path) -> None:
    store = ["Pendulum-v1", "--steps=20", f"--store={tmp_path / 's'}"]
    main([*store, "--environment.wrappers=[ClipAction]"])
    main([*store, "--environment.wrappers=[gymnasium.wrappers.ClipAction]", "--seed=1"])
    with storage.open(tmp_path / "s") as kept:
        assert kept.n_steps == 40


def test_a_runs_own_store_is_refused(run: Path, tmp_path: Path) -> None:
    before = storage.content_hash(run / "store")
    (tmp_path / "link").symlink_to((run / "store").absolute())
    for path in (run / "store", tmp_path / "link"):
        with pytest.raises(ConfigError, match="is the store of the run"):
            collect(path, "--seed=9")
    assert storage.content_hash(run / "store") == before


def test_a_curve_counts_the_runs_own_episodes(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "store", tmp_path / "moved")
    collect(tmp_path / "moved", "--seed=9", steps=500)
    shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("store"))
    (tmp_path / "moved").rename(tmp_path / "run" / "store")
    assert read_learning_curve(tmp_path / "run").steps[-1] == 1100


def test_salvaged_steps_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """And only once: opening says so already."""
    script = (
        "import os, sys; from pipeline import collect; "
        "collect._advance = lambda collector, steps: "
        "[collector.advance() for _ in range(7)] and os._exit(9); "
        "collect.main(sys.argv[1:])"
    )
    words = ["Pendulum-v1", "--steps=30", f"--store={tmp_path / 's'}"]
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script, *words], cwd=root, check=False)
    with pytest.raises(ConfigError, match="--seed=0 before"):
        main(words)
    subprocess.run([sys.executable, "-c", script, *words, "--seed=1"], cwd=root, check=False)
    caplog.clear()
    main([*words, "--seed=2"])
    out = capsys.readouterr().out
    assert caplog.text.count("salvaged 7 steps") == 1
    assert "salvaged 7" not in out
    assert "30 steps in 1 episode are in" in out


def test_nothing_stored_is_an_error(tmp_path: Path) -> None:
    words = ["tests.pipeline.test_collect.Rotten", f"--store={tmp_path / 's'}"]
    with pytest.raises(NonFiniteError, match="none of the 5 steps could be stored"):
        main([*words, "--steps=5", "--nonfinite=end_episode"])
    with pytest.raises(NonFiniteError, match="20 episodes in a row") as caught:
        main([*words, "--steps=5000", "--nonfinite=end_episode"])
    assert "0 steps in 0 episodes are in" in caught.value.__notes__[-1]


class Rotten(Drift):
    def step(self, action):
        observation, *rest = super().step(action)
        return observation * np.nan, *rest


def test_suggested_commands_can_be_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collect(tmp_path / "my store")
    assert f"sharpwave inspect '{tmp_path / 'my store'}'" in capsys.readouterr().out


def test_an_option_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--store is given twice, as 'a' and as 'b'"):
        main(["Pendulum-v1", "--steps=5", "--store=a", "--store", "b"])
