from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import gymnasium
import pytest
import torch

from pipeline.evaluate import main
from pipeline.playing_line import playing_line
from pipeline.train import main as train
from storage.errors import CheckpointError, ConfigError, SchemaMismatchError, SharpwaveError
from tests.pipeline.conftest import SMALL, run_in, small
from training.checkpoints.checkpoint_file import read_checkpoint


def test_numbers_are_repeatable(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run), "--episodes=3", "--json"])
    first = json.loads(capsys.readouterr().out)
    main([str(run / "checkpoints/best.ckpt"), "--episodes=3", "--json"])
    assert json.loads(capsys.readouterr().out) == first
    assert first["episodes"] == len(first["returns"]) == len(set(first["seeds"])) == 3
    assert first["mean_return"] == pytest.approx(sum(first["returns"]) / 3)


def test_other_seeds_play_other_episodes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run), "--episodes=2", "--json"])
    first = json.loads(capsys.readouterr().out)
    main([str(run), "--episodes=2", "--json", "--seed=1"])
    assert not set(first["seeds"]) & set(json.loads(capsys.readouterr().out)["seeds"])


def test_text_says_which_checkpoint_was_taken(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(run), "--episodes=1"])
    text = capsys.readouterr().out
    assert text.startswith(f"{run}/checkpoints/best.ckpt: written after ")
    assert "InvertedPendulum-v5, 1 greedy episode\n" in text


def test_a_policy_that_learnt_from_a_store_counts_updates(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = (run / "store").absolute()
    monkeypatch.chdir(tmp_path)
    small = [word for word in SMALL if "loop.steps" not in word]
    train([*small, "--name=offline", f"--offline={store}", "--loop.steps=64"])
    capsys.readouterr()
    main(["runs/offline", "--episodes=1"])
    assert f"ckpt: written after 64 updates on {store}\n" in capsys.readouterr().out
    main(["runs/offline", "--episodes=1", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["training_steps"], told["training_updates"]) == (0, 64)


def test_the_run_s_last_checkpoint(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(run), "--episodes=1", "--checkpoint=last", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["checkpoint"] == f"{run}/checkpoints/last.ckpt"
    assert told["training_steps"] == 1100


def test_without_evaluations_the_last_is_taken(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("best.ckpt", "store"))
    main([str(tmp_path / "run"), "--episodes=1"])
    assert "/checkpoints/last.ckpt: written after 1,100 steps" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"has no best\.ckpt.*--checkpoint last"):
        main([str(tmp_path / "run"), "--checkpoint=best"])


def test_a_mistyped_run_gets_the_nearest_name(run: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'small'"):
        main([str(run.with_name("smal"))])
    with pytest.raises(ConfigError, match="is one checkpoint"):
        main([str(run / "checkpoints/last.ckpt"), "--checkpoint=best"])


def test_ascii_terminals_are_spoken_to(trained: tuple[Path, str, str]) -> None:
    folder = trained[0]
    words = ("evaluate", "runs/small", "--episodes=1")
    done = run_in(folder, *words, PYTHONIOENCODING="ascii")
    assert " +- 0.0" in done.stdout
    for words in [("inspect", "runs/small"), ("curve", "runs/small"), ("train", "--help")]:
        assert run_in(folder, *words, PYTHONIOENCODING="ascii").stdout.isascii()
    error = run_in(folder, "inspect", "runs/…", code=2, PYTHONIOENCODING="ascii").stderr
    assert "no store runs/...; give" in error


def test_a_checkpoint_s_code_is_run_only_where_the_user_names_it(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("store"))
    best = tmp_path / "run/checkpoints/best.ckpt"
    content = read_checkpoint(best)
    content["sharpwave"]["config"]["environment"]["id"] = "theirs:make"
    torch.save(content, best)
    (tmp_path / "theirs.py").write_text(
        "import pathlib, gymnasium\n"
        f"pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n"
        "make = lambda: gymnasium.make('InvertedPendulum-v5')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for words in ([str(tmp_path / "run")], [str(best)]):
        with pytest.raises(
            ConfigError, match=r"best\.ckpt names 'theirs:make'.*--trust=theirs:make"
        ):
            main([*words, "--episodes=1"])
    assert not (tmp_path / "ran").exists()
    main([str(best), "--episodes=1", "--trust=theirs:make"])
    assert (tmp_path / "ran").exists()
    settings = tmp_path / "run/config.yaml"
    settings.write_text(settings.read_text().replace("InvertedPendulum-v5", "theirs:make"))
    main([str(best), "--episodes=1"])


def test_an_agent_that_cannot_be_imported_is_told_so(run: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("store"))
    best, settings = copied / "checkpoints/best.ckpt", copied / "config.yaml"
    content = read_checkpoint(best)
    content["sharpwave"]["config"]["agent"]["kind"] = "no_such_agents.Curious"
    torch.save(content, best)
    settings.write_text(
        settings.read_text().replace("kind: vracer", "kind: no_such_agents.Curious")
    )
    with pytest.raises(SharpwaveError, match="No module named 'no_such_agents'"):
        main([str(copied), "--episodes=1"])


def test_it_acts_with_the_run_s_threads(run: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        main([str(run), "--episodes=1"])
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_episodes_that_never_end_are_cut_at_the_most_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    endless = ("--environment.id=tests.training.zoo.Alike", "--evaluation.max_steps=40")
    with pytest.warns(UserWarning, match=r"40 steps \(evaluation\.max_steps\)"):
        train(["--name=endless", *small(*endless, "--loop.steps=300")])
    for words, length in ([], 40), (["--max-steps=70"], 70):
        capsys.readouterr()
        main(["runs/endless", "--episodes=2", "--json", *words])
        shown = capsys.readouterr()
        told = json.loads(shown.out)
        assert (told["cut_episodes"], told["mean_length"]) == (2, length)
        assert shown.err.count("\n") == 1
        assert f"2 of 2 episodes had not ended after {length} steps and were cut" in shown.err


def test_most_steps_cut_where_the_environment_has_a_limit_too(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(run), "--episodes=1", "--max-steps=1", "--json"])
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert (told["cut_episodes"], told["mean_length"]) == (1, 1)
    assert "1 of 1 episodes had not ended after 1 steps and were cut there" in shown.err


def test_a_long_episode_shows_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with playing_line(10, interval=0.0) as show:
        show(2, 45_000)
    with playing_line(10) as show:
        show(2, 45_001)
    assert capsys.readouterr().err == "episode 3 of 10: 45,000 steps\n"


def test_keyword_arguments_change_the_environment(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for more in ([], ["--environment-kwargs={reset_noise_scale: 0.0}"]):
        main([str(run), "--episodes=10", "--json", *more])
        told.append(json.loads(capsys.readouterr().out))
    returns = [len(set(each["returns"])) for each in told]
    assert (returns[0] > 1, returns[1]) == (True, 1)
    assert [each["environment_kwargs"] for each in told] == [{}, {"reset_noise_scale": 0.0}]


def dated(day: object = None) -> gymnasium.Env:
    return gymnasium.make("InvertedPendulum-v5")


def test_what_json_has_no_form_for_is_said_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """YAML makes a date of 2026-01-02: the episodes are played by then, and must not be lost."""
    environment = "--environment.id=tests.pipeline.test_evaluate.dated"
    train(small("--name=dated", environment, "--loop.steps=300", f"--runs={tmp_path}"))
    words = [str(tmp_path / "dated"), "--episodes=1", "--environment-kwargs={day: 2026-01-02}"]
    main(words)
    assert 'with {"day": "2026-01-02"}, 1 greedy episode\n' in capsys.readouterr().out
    main([*words, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["environment_kwargs"] == {"day": "2026-01-02"}


def test_one_game_played_again_and_again_is_told(
    pong: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(pong), "--episodes=3"])
    told = capsys.readouterr()
    assert "note: 3 greedy episodes of Atari/pong are one and the same game" in told.err
    assert 'Atari/pong with {"max_frames": 160, "screen": 36}, 3 greedy episodes\n' in told.out
    for words in (["--episodes=1"], ["--episodes=2", "--environment-kwargs={noop_max: 30}"]):
        main([str(pong), *words])
        assert capsys.readouterr().err == ""


def test_bad_requests(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="0 is too small"):
        main([str(run), "--episodes=0"])
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        main([str(tmp_path / "none.ckpt")])
    for given, error, message in (
        ("[1]", ConfigError, r"'\[1\]' are no keyword arguments, as {noop_max: 30}"),
        ("{a: ", ConfigError, "'{a: ' cannot be read"),
        ("{stiffness: 1}", ConfigError, "environment.kwargs {'stiffness': 1}: TypeError"),
    ):
        with pytest.raises(error, match=message):
            main([str(run), f"--environment-kwargs={given}"])
    broken = tmp_path / "broken.ckpt"
    broken.write_bytes(b"no checkpoint")
    with pytest.raises(CheckpointError, match="cannot be read as a checkpoint"):
        main([str(broken)])


def test_other_spaces_than_the_agent_s_are_refused(pong: Path) -> None:
    with pytest.raises(SchemaMismatchError, match=r"'stack': 3} has obs.*leave out what changes"):
        main([str(pong), "--environment-kwargs={stack: 3}"])


def test_a_checkpoint_of_another_run_is_not_taken_for_this_ones(run: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(run, tmp_path / "copied")
    settings = copied / "config.yaml"
    settings.write_text(settings.read_text().replace("kind: vracer", "kind: ddpg"))
    text = settings.read_text()
    for name in ("state_dependent_stdev", "initial_stdev"):
        text = re.sub(rf"  {name}: .*\n", "", text)
    settings.write_text(text)
    with pytest.raises(ConfigError, match=r"is of another run: its agent.kind is 'vracer', .*ddpg"):
        main([str(copied)])
    alone = shutil.copy(copied / "checkpoints/last.ckpt", tmp_path / "alone.ckpt")
    assert main([str(alone), "--episodes=1"]) == 0
