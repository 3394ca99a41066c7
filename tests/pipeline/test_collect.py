from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import storage
from pipeline.collect import main
from pipeline.summary_table import byte_text
from storage import BehaviourKind, Ending
from storage.errors import (
    CheckpointError,
    ConfigError,
    EnvironmentNotFoundError,
    SchemaMismatchError,
    StoreExistsError,
)


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
    words = ["--steps=30", f"--store={tmp_path / 's'}"]
    main(["Pendulum-v1", *words])
    assert f"30 steps in 1 episode are in {tmp_path / 's'} (" in capsys.readouterr().out
    main(["Pendulum-v1", *words, "--steps=1", "--seed=2"])
    out = capsys.readouterr().out
    assert "Pendulum-v1: 1 step takes up to" in out
    assert f"1 step in 1 episode is in {tmp_path / 's'} (" in out


def test_the_announced_need_is_what_is_allocated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """60 rows are allocated as 1,024, and every column has an index."""
    collect(tmp_path / "s")
    with storage.open(tmp_path / "s") as store:
        columns, row_bytes = len(store.schema.columns), store.schema.row_bytes
    need = byte_text(columns * 32768 + 1024 * row_bytes)
    assert f"60 steps take up to {need} while they are written" in capsys.readouterr().out


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
