from __future__ import annotations

import csv
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

import storage
import training
from pipeline.run_folder import RunFolder
from pipeline.train import main
from storage.errors import (
    CheckpointError,
    ConfigError,
    EnvironmentNotFoundError,
    NonFiniteError,
    SchemaMismatchError,
    UnsupportedSpaceError,
)
from tests.pipeline.conftest import SMALL, small


def test_a_run_writes_its_folder_and_nothing_else(trained: tuple[Path, str, str]) -> None:
    folder = trained[0]
    assert os.listdir(folder) == ["runs"]
    names = {"config.yaml", "store", "checkpoints", "metrics.csv", "tensorboard", "curve.png"}
    assert set(os.listdir(folder / "runs/small")) == names
    assert (folder / "runs/small/curve.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_printed(trained: tuple[Path, str, str]) -> None:
    _, out, err = trained
    assert "1,100 steps and 900 updates" in out
    assert out.count("updates by the fused engine (agent.engine: auto)\n") == 1
    assert "return of training episodes" in out
    assert "sharpwave evaluate runs/small" in out
    assert "\r" not in out + err
    assert "\x1b" not in out + err
    assert "arning" not in err
    assert len(err.splitlines()) <= 2


def test_the_store_holds_every_step(run: Path) -> None:
    with storage.open(run / "store") as store:
        assert store.n_steps == 1100
        assert store.env_spec.id == "InvertedPendulum-v5"


def test_metrics_have_the_schedule(run: Path) -> None:
    with (run / "metrics.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["beta"]]
    steps = [int(row["environment_steps"]) for row in rows]
    assert steps == sorted(steps)
    assert steps[-1] == 1100
    assert 0 < float(rows[-1]["beta"]) < 1
    assert 0 <= float(rows[-1]["far_fraction"]) <= 1


def test_config_repeats_the_run(run: Path) -> None:
    kept = yaml.safe_load((run / "config.yaml").read_text())
    assert kept["loop"]["steps"] == 1100
    assert kept["agent"]["hidden"] == [8, 8]


def test_existing_name_says_how_to_go_on(run: Path) -> None:
    before = sorted(path.stat().st_mtime_ns for path in run.rglob("*"))
    with pytest.raises(ConfigError, match="--resume runs/small`, or choose another --name"):
        main(["--name=small", *SMALL])
    assert sorted(path.stat().st_mtime_ns for path in run.rglob("*")) == before


def test_finished_run_asks_for_more_steps(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"has taken its 1,100 steps; go on by --loop\.steps"):
        main(["--resume", str(run)])


@pytest.mark.parametrize("picture", [True, False])
def test_a_smaller_budget_than_was_taken_is_refused_with_or_without_a_picture(
    run: Path, tmp_path: Path, picture: bool
) -> None:
    """A run that was interrupted has no picture yet, and is not finished by a smaller budget."""
    shutil.copytree(run, tmp_path / "cut")
    config = tmp_path / "cut/config.yaml"
    config.write_text(config.read_text().replace("steps: 1100", "steps: 5000"))
    if not picture:
        (tmp_path / "cut/curve.png").unlink()
    for less in (500, 1100):
        message = rf"taken 1,100 of the 5,000 steps that its config\.yaml plans; .*steps={less} is"
        with pytest.raises(ConfigError, match=message):
            main(["--resume", str(tmp_path / "cut"), f"--loop.steps={less}"])
    assert (tmp_path / "cut/curve.png").exists() is picture
    assert "steps: 5000" in config.read_text()


def test_a_finished_run_refuses_a_smaller_budget_also_without_its_picture(
    run: Path, tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "done")
    (tmp_path / "done/curve.png").unlink()
    with pytest.raises(ConfigError, match=r"taken 1,100 of the 1,100 steps"):
        main(["--resume", str(tmp_path / "done"), "--loop.steps=600"])
    assert not (tmp_path / "done/curve.png").exists()


def test_resumed_run_stays_the_same_run(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot change seed, agent\.discount"):
        main(["--resume", str(run), "--loop.steps=2000", "--seed=1", "--agent.discount=0.9"])
    with pytest.raises(ConfigError, match=r"leave out other\.yaml"):
        main(["other.yaml", "--resume", str(run)])


def test_resume_without_a_checkpoint_names_it(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "broken", ignore=shutil.ignore_patterns("*.ckpt"))
    remedy = r"last\.ckpt does not exist\. Learn from its steps by --offline .*broken/store"
    with pytest.raises(CheckpointError, match=remedy):
        main(["--resume", str(tmp_path / "broken"), "--loop.steps=2000"])
    with pytest.raises(ConfigError, match=r"no checkpoint to go on from.*--offline .*broken/store"):
        main(["--name=broken", f"--runs={tmp_path}", *SMALL])


def test_a_run_that_failed_before_its_first_step_starts_again_by_the_same_command(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run.resolve()
    monkeypatch.chdir(tmp_path)
    folder = Path("runs/again")
    folder.mkdir(parents=True)
    shutil.copy(run / "config.yaml", folder)
    with storage.open(run / "store") as store:
        storage.create(folder / "store", store.env_spec).close()
    remedy = r"It took no step, so start it again by `sharpwave train runs/again/config\.yaml`"
    with pytest.raises(CheckpointError, match=remedy):
        main(["--resume", "runs/again"])
    main(["--name=again", *small("--loop.steps=256")])
    with storage.open(folder / "store") as store:
        assert store.n_steps == 256


def test_a_folder_that_another_process_trains_in_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    message = "another process is training in runs/busy"
    with RunFolder(Path("runs/busy")).held(), pytest.raises(ConfigError, match=message):
        main(["--name=busy", *SMALL])
    assert os.listdir("runs/busy") == []


def test_a_failed_run_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An environment that shows NaN at its 40th step, long before a checkpoint is due."""
    monkeypatch.chdir(tmp_path)
    words = ["--name=nan", *small("--environment.id=tests.training.zoo.TurnsNan")]
    with pytest.raises(NonFiniteError):
        main(words)
    hint = "Go on from step 0 by `sharpwave train --resume runs/nan`"
    assert hint in capsys.readouterr().err
    assert Path("runs/nan/checkpoints/last.ckpt").is_file()


@pytest.mark.parametrize(
    ("lanes", "message"), [(1, "lane 0: in 20 episodes in a row"), (60, "none could be stored")]
)
def test_a_run_that_could_store_nothing_is_an_error(
    lanes: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--name=rotten", *small("--environment.id=tests.pipeline.test_collect.Rotten")]
    with pytest.raises(NonFiniteError, match=message):
        main([*words, f"--loop.lanes={lanes}", "--loop.nonfinite=end_episode"])


def test_suggested_commands_can_be_pasted(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my runs" / "small"
    shutil.copytree(run, folder)
    with pytest.raises(ConfigError, match=f"--resume '{folder}'`"):
        main([f"--runs={folder.parent}", "--name=small", *SMALL])


def test_unknown_run_gets_the_nearest_name(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"runs/smal is no run.*did you mean 'small'"):
        main(["--resume", "runs/smal"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ([], ConfigError, "nothing to train"),
        (["--environment.id=Hoper-v5"], EnvironmentNotFoundError, "Hopper-v5"),
        (["--environment.id=Hopper-v5", "--loop.steps=0"], ConfigError, "steps is 0"),
        (["--environment.id=Hopper-v5", "--loop.lanes=-2"], ConfigError, "lanes is -2"),
        (["--environment.id=Hopper-v5", "--replay.window=8"], ConfigError, "window is 8"),
        (["--environment.id=Hopper-v5", "--name=a/b"], ConfigError, "name is 'a/b'"),
        (
            ["--environment.id=Hopper-v5", "--replay.scheme=x"],
            ConfigError,
            r"replay\.scheme is 'x'.* uniform, per, pser",
        ),
        (
            ["--environment.id=Hopper-v5", "--replay.forget=newest"],
            ConfigError,
            r"replay\.forget is 'newest'.* oldest, most_far, largest_divergence",
        ),
        (
            ["--environment.id=Hopper-v5", "--replay.priorities.alpha=1.5"],
            ConfigError,
            r"replay\.priorities: .*alpha = 1\.5 must lie in \[0, 1\]",
        ),
        (
            ["--environment.id=Hopper-v5", "--replay.sequences.decay=1"],
            ConfigError,
            r"replay\.sequences: .*decay = 1\.0 must lie in \[0, 1\)",
        ),
        (
            ["--environment.id=Hopper-v5", "--replay.priorities.alhpa=1"],
            ConfigError,
            r"no option --replay\.priorities\.alhpa, did you mean '--replay\.priorities\.alpha'",
        ),
        (
            ["--environment.id=Hopper-v5", "--replay.priorities.error=hubr"],
            ConfigError,
            r"priorities\.error is 'hubr'; did you mean huber\?.*: absolute, huber",
        ),
        (
            ["--environment.id=Hopper-v5", "--replay.scheme=per", "--agent.batch_size=300000"],
            ConfigError,
            r"replay\.window is 262144, smaller than agent\.batch_size 300000",
        ),
        (["--environment.id=Hopper-v5", "--replay.overlay=a/b"], ConfigError, "overlay is 'a/b'"),
        (["--environment.id=Hopper-v5", "--loop.steps=99"], ConfigError, "warmup is 10,000 of"),
        (["--environment.id=CartPole-v1"], UnsupportedSpaceError, "Discrete"),
        (
            ["--environment.id=CartPole-v1", "--agent.kind=naf", "--loop.steps=200"],
            UnsupportedSpaceError,
            "Discrete",
        ),
        (
            ["--environment.id=Hopper-v5", "--agent.kind=dqn", "--loop.steps=20"],
            UnsupportedSpaceError,
            "Box",
        ),
        (
            ["--environment.id=Hopper-v5", "--agent.kind=dqn", "--replay.window=8"],
            UnsupportedSpaceError,
            "Box",
        ),
        (
            ["--environment.id=Atari/Pog", "--loop.steps=200"],
            EnvironmentNotFoundError,
            "Atari/Pong",
        ),
        (
            ["--environment.id=Hopper-v5", '--logging.loggers=[{"class_path": "no.Logger"}]'],
            ConfigError,
            "cannot be made",
        ),
        (["--offline=nowhere", "--environment.id=Hopper-v5"], Exception, "nowhere"),
    ],
)
def test_bad_requests_leave_no_folder(
    options: list[str],
    error: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        main(options)
    assert os.listdir(tmp_path) == []


def test_offline_learns_from_a_store_it_leaves_alone(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run / "store", tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    before = storage.content_hash("store")
    main([*small("--loop.steps=64"), "--name=off", "--offline=store"])
    shown = capsys.readouterr()
    assert "runs/off: InvertedPendulum-v5, 64 updates on store\n" in shown.out
    assert "\n64 updates in " in shown.out
    assert "64 of 64 updates (100 %)" in shown.err
    assert " steps" not in shown.out.split("inspect")[0] + shown.err
    assert storage.content_hash("store") == before
    assert not Path("runs/off/store").exists()
    agent = training.load("runs/off")
    assert agent.experience_text == "64 updates on store"
    own = [word for word in small("--loop.steps=64") if "environment" not in word]
    main([*own, "--name=own", "--offline=store"])
    kept = yaml.safe_load(Path("runs/own/config.yaml").read_text())
    assert kept["environment"]["id"] == "InvertedPendulum-v5"
    with pytest.raises(SchemaMismatchError, match="holds steps of InvertedPendulum-v5"):
        main(["--environment.id=Hopper-v5", "--name=other", "--offline=store"])
    assert sorted(os.listdir("runs")) == ["off", "own"]


def test_a_finished_run_without_its_picture_gets_it(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a kill between the last checkpoint and the picture leaves it."""
    shutil.copytree(run, tmp_path / "cut", ignore=shutil.ignore_patterns("curve.png"))
    words = ["--resume", str(tmp_path / "cut")]
    assert main(words) == 0
    assert (tmp_path / "cut/curve.png").read_bytes().startswith(b"\x89PNG")
    assert "sharpwave evaluate" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="has taken its 1,100 steps"):
        main(words)
    (tmp_path / "cut/curve.png").unlink()
    shutil.rmtree(tmp_path / "cut/store")
    with pytest.raises(ConfigError, match="has taken its 1,100 steps"):
        main(words)


def test_a_resumed_run_says_where_it_goes_on_and_what_was_set_aside(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run, tmp_path / "cut")
    checkpoints = tmp_path / "cut/checkpoints"
    shutil.copy(checkpoints / "previous.ckpt", checkpoints / "last.ckpt")
    assert main(["--resume", str(tmp_path / "cut"), "--loop.steps=1132"]) == 0
    line = "going on from step 1,024; 76 later steps are set aside in store/orphans\n"
    assert line in capsys.readouterr().out
    assert main(["--resume", str(tmp_path / "cut"), "--loop.steps=1164"]) == 0
    assert "going on from step 1,132\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--environment.id=tests.training.zoo.Counting", "--environment.kwargs={length: 9999}"],
            r"never held a batch of 16 steps; raise loop\.steps, give the environment a limit",
        ),
        (["--loop.updates_per_step=0"], r"loop\.updates_per_step is 0; set it to 1"),
        (
            ["--loop.updates_per_step=0.001"],
            r"step \d+ of 256, and loop\.updates_per_step 0\.001 makes no update of the \d+ steps",
        ),
        ([], None),
    ],
)
def test_a_run_without_an_update_says_why_at_its_end(
    words: list[str],
    message: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    own = small("--loop.steps=256", "--evaluation.episodes=0", *words)
    assert main(["--name=idle", *own]) == 0
    shown = capsys.readouterr()
    lines = [line for line in shown.err.splitlines() if "nothing was learnt" in line]
    assert (" 0 updates in " in shown.out) is bool(message)
    assert len(lines) == bool(message)
    if message:
        assert re.search(message, lines[0])
