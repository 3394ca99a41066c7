"""Tables of what the Atari protocol has played, from files written here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from pipeline.protocol import main
from pipeline.protocol.parquet_file import write_rows
from pipeline.protocol.played import played_schema, played_text
from storage.errors import ConfigError


def told(method: str = "DQN, ER, PSER", **changes: Any) -> str:
    """Settings as a table has them, with `changes`, whose names have __ for each dot."""
    own = {name.replace("__", "."): value for name, value in changes.items()}
    scheme = {"PSER": "pser", "PER": "per"}.get(method.rpartition(" ")[2], "uniform")
    same = {"replay.scheme": scheme, "agent.learning_rate": 1.0, "loop.steps": 500}
    weights = {"beta": 0.5, "beta_final": 0.5, "beta_draws": None}
    draws = {f"replay.priorities.{name}": value for name, value in weights.items()}
    return json.dumps(same | draws | {"replay.sequences.mode": "max"} | own)


def rows(
    game: str, scores: list[float], method: str = "DQN, ER, PSER", seed: int = 0, **other: Any
) -> list[Any]:
    same = {
        "run": f"{game}-{seed}",
        "method": method,
        "settings": told(method),
        "game": game,
        "environment": "Atari/Pong",
        "checkpoint": "best.ckpt",
        "training_steps": 500,
        "run_seed": seed,
        "epsilon": 0.001,
        "noop_max": 30,
        "frames_budget": 500_000,
        "frame_skip": 4,
        "max_frames": 108_000,
        "sticky": 0.0,
        "full_actions": False,
        "wrappers": "",
        "phase_seed": 0,
        "steps": 100,
        "complete": True,
    }
    return [
        same | {"episode": number, "reset_seed": number, "score": score} | other
        for number, score in enumerate(scores)
    ]


def written(path: Path, *parts: list[Any]) -> str:
    write_rows([row for part in parts for row in part], played_schema(), path)
    return str(path)


def table(path: Path) -> dict[str, Any]:
    return {row.pop("game"): row for row in pyarrow.parquet.read_table(path).to_pylist()}


def test_scores_beside_humans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Each run counts once, however many episodes it played.
    pong = written(
        tmp_path / "pong", rows("pong", [14.6, 14.6, 14.6]), rows("pong", [-20.7], seed=1)
    )
    freeway = written(tmp_path / "freeway", rows("freeway", [29.6]))
    main(["scores", pong, freeway])
    out = capsys.readouterr().out
    assert "DQN, ER, PSER: median 75.0 %, mean 75.0 % over 2 games" in out
    assert "Video Pinball" not in out
    found = table(tmp_path / "atari_scores.parquet")
    assert (found["pong"]["runs"], found["freeway"]["runs"]) == (2, 1)
    assert found["pong"]["score"] == pytest.approx(-3.05)
    assert found["pong"]["human_normalised"] == pytest.approx(50.0)
    assert found["freeway"]["human_normalised"] == pytest.approx(100.0)
    assert found["pong"]["improvement"] is None


def test_improvement_over_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = written(
        tmp_path / "own", rows("freeway", [14.8]), rows("pong", [0.0]), rows("enduro", [0.0])
    )
    per = written(
        tmp_path / "per",
        *(rows(game, [0.0], "DQN, ER, PER") for game in ("freeway", "pong", "gopher")),
    )
    main(["scores", own, "--baseline", per, f"--output={tmp_path / 'out.parquet'}"])
    out = capsys.readouterr().out
    # Enduro and Gopher are in no summary: one side lacks them.
    assert "\nDQN, ER, PSER: median 54.3 %, mean 54.3 % over 2 games\n" in out
    assert "\nDQN, ER, PER: median 29.3 %, mean 29.3 % over 2 games\n" in out
    gain = "improvement of DQN, ER, PSER over DQN, ER, PER: median 25.0 %, mean 25.0 % over 2 games"
    alone = "only DQN, ER, PSER has enduro\nonly DQN, ER, PER has gopher\n"
    assert f"\n{gain}\n{alone}" in out
    assert "games and seeds, these runs differ in replay.scheme\n" in out
    found = table(tmp_path / "out.parquet")
    assert found["freeway"]["improvement"] == pytest.approx(50.0)
    assert found["pong"]["improvement"] == 0.0
    assert found["enduro"]["baseline_score"] is None
    main(["scores", own, "--baseline", per, "--json", f"--output={tmp_path / 'out.parquet'}"])
    err = capsys.readouterr().err
    assert all(f"sharpwave: note: {line}\n" in err for line in alone.splitlines())
    other = written(tmp_path / "other", rows("gopher", [0.0], "DQN, ER, PER"))
    main(["scores", own, "--baseline", other])
    assert "DQN, ER, PER: no game that both have\n" in capsys.readouterr().out


def test_the_choice_of_video_pinball_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "pinball", rows("video_pinball", [300_000.0]))
    main(["scores", file])
    out = capsys.readouterr().out
    assert "median 20,109.4 %" in out
    assert "normalised by a random score of 16,256.9" in out
    main(["scores", file, "--video-pinball-random=0", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["human_normalised"] == pytest.approx(
        1698.0, abs=0.1
    )
    main(["scores", file, "--video-pinball-random=0"])
    assert "normalised by a random score of 0.0" in capsys.readouterr().out


def test_what_cannot_be_tabled(tmp_path: Path) -> None:
    mixed = written(tmp_path / "a", rows("pong", [0.0]), rows("pong", [0.0], "DQN, ER"))
    with pytest.raises(ConfigError, match=r"are of DQN, ER, PSER and DQN, ER; name files of one"):
        main(["scores", mixed])
    with pytest.raises(ConfigError, match=r"no human score of the game 'air_raid'"):
        main(["scores", written(tmp_path / "b", rows("air_raid", [0.0]))])
    with pytest.raises(ConfigError, match=r"there is no file .*none\.parquet$"):
        main(["scores", str(tmp_path / "none.parquet")])
    with pytest.raises(ConfigError, match=r"there is no file .*none\.parquet$"):
        main(["scores", mixed, "--baseline", str(tmp_path / "none.parquet")])
    with pytest.raises(ConfigError, match=rf"{tmp_path} is a folder; name a Parquet file"):
        main(["scores", str(tmp_path)])
    (tmp_path / "text").write_text("no table")
    with pytest.raises(ConfigError, match="text cannot be read as Parquet"):
        main(["scores", str(tmp_path / "text")])
    main(["scores", written(tmp_path / "c", rows("pong", [0.0]))])
    with pytest.raises(ConfigError, match=r"atari_scores\.parquet has columns game, runs"):
        main(["scores", str(tmp_path / "atari_scores.parquet")])


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("epsilon", 0.05, "epsilon is 0.001 in {a} and 0.05 in {b}"),
        ("noop_max", 0, "noop_max is 30 in {a} and 0 in {b}"),
        ("frames_budget", 1000, "frames_budget is 500000 in {a} and 1000 in {b}"),
        ("frame_skip", 1, "frame_skip is 4 in {a} and 1 in {b}"),
        ("max_frames", 400, "max_frames is 108000 in {a} and 400 in {b}"),
        ("sticky", 0.25, "sticky is 0.0 in {a} and 0.25 in {b}"),
        ("full_actions", True, "full_actions is False in {a} and True in {b}"),
        ("wrappers", "[W]", "wrappers is none in {a} and [W] in {b}"),
    ],
)
def test_phases_of_different_protocols_are_not_compared(
    tmp_path: Path, column: str, value: Any, told: str
) -> None:
    a = written(tmp_path / "a", rows("pong", [0.0]))
    b = written(tmp_path / "b", rows("pong", [0.0], seed=1, **{column: value}))
    named = re.escape(told.format(a=a, b=b))
    with pytest.raises(ConfigError, match=f"not played by one protocol: {named}. Scores"):
        main(["scores", a, b])
    per = written(tmp_path / "b", rows("pong", [0.0], "DQN, ER, PER", **{column: value}))
    with pytest.raises(ConfigError, match=named):
        main(["scores", a, "--baseline", per])
    within = rows("pong", [0.0]) + rows("pong", [0.0], seed=1, **{column: value})
    with pytest.raises(ConfigError, match=f"by one protocol: {column} is"):
        main(["scores", written(tmp_path / "c", within)])


def test_all_that_differs_is_named_with_a_few_of_many_files(tmp_path: Path) -> None:
    alike = [written(tmp_path / f"{seed}", rows("pong", [0.0], seed=seed)) for seed in range(5)]
    other = written(tmp_path / "x", rows("pong", [0.0], seed=9, epsilon=0.0, noop_max=7))
    with pytest.raises(ConfigError) as refused:
        main(["scores", *alike, other])
    where = f"{', '.join(alike[:3])} and 2 more and"
    assert f"epsilon is 0.001 in {where} 0.0 in {other}; noop_max is 30 in" in str(refused.value)


def test_seeds_and_the_newest_steps_may_differ(tmp_path: Path) -> None:
    file = written(
        tmp_path / "a",
        rows("pong", [0.0]),
        rows("pong", [1.0], seed=1, phase_seed=5, training_steps=9),
    )
    main(["scores", file, file])
    assert table(tmp_path / "atari_scores.parquet")["pong"]["score"] == 0.5


def test_variants_are_no_one_method(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add = told(replay__sequences__mode="add")
    largest = written(tmp_path / "max", rows("pong", [0.0]), rows("pong", [2.0], seed=1))
    sum_ = written(tmp_path / "add", rows("pong", [-10.0], settings=add))
    named = "DQN, ER, PSER, replay.sequences.mode"
    with pytest.raises(ConfigError, match=f"add are of {named}=max and {named}=add; name files"):
        main(["scores", largest, sum_])
    main(["scores", largest, "--baseline", sum_])
    out = capsys.readouterr().out
    assert f"improvement of {named}=max over {named}=add: median" in out
    assert "games and seeds, these runs differ in replay.sequences.mode\n" in out
    main(["scores", largest])
    assert "\nDQN, ER, PSER: median" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "value", "what"),
    [("agent__learning_rate", 2.0, "1.0 and 2.0"), ("loop__steps", 900, "500 and 900")],
)
def test_runs_of_a_method_must_agree(tmp_path: Path, setting: str, value: float, what: str) -> None:
    for game in ("pong", "freeway"):
        a = written(tmp_path / "a", rows("pong", [0.0]))
        b = written(tmp_path / "b", rows(game, [0.0], seed=1, settings=told(**{setting: value})))
        pair = f"pong-0 in {a} and {game}-1 in {b} are both DQN, ER, PSER, but differ in"
        name = setting.replace("__", ".")
        for words in ([a, b], [a, "--baseline", b]):
            with pytest.raises(ConfigError, match=re.escape(f"{pair} {name} ({what}); name runs")):
                main(["scores", *words])


def test_a_run_counts_once(tmp_path: Path) -> None:
    a = written(tmp_path / "a", rows("pong", [0.0, 1.0], checkpoint="/x/runs/pong/best.ckpt"))
    again = {"checkpoint": "runs/pong/best.ckpt", "phase_seed": 1}
    b = written(tmp_path / "b", rows("pong", [5.0, 6.0], **again))
    main(["scores", a, b])
    pong = table(tmp_path / "atari_scores.parquet")["pong"]
    assert (pong["runs"], pong["score"]) == (1, 3.0)
    copy = written(tmp_path / "copy", rows("pong", [0.0, 1.0], checkpoint="best.ckpt"))
    same = f"{a} and {copy} hold the same phase, of seed 0 and best.ckpt after 500 steps of the run"
    with pytest.raises(ConfigError, match=rf"{same} pong-0; leave one out"):
        main(["scores", a, copy])
    last = written(tmp_path / "last", rows("pong", [0.0], checkpoint="last.ckpt", phase_seed=1))
    with (
        pytest.warns(UserWarning, match="choosing the best"),
        pytest.raises(ConfigError, match=r"last those of last\.ckpt after 500 steps; name one of"),
    ):
        main(["scores", a, last])
    other = written(tmp_path / "other", rows("pong", [0.0], run="other"))
    told = "pong-0 in .* and other in .* are both DQN, ER, PSER on pong with seed 0; leave one out"
    with pytest.raises(ConfigError, match=told):
        main(["scores", a, other])


def test_an_interrupted_phase_is_no_score(tmp_path: Path) -> None:
    own = written(tmp_path / "a", rows("pong", [0.0]))
    part = written(tmp_path / "b", rows("pong", [0.0, 1.0], complete=False))
    told = "b is of a phase that was interrupted, after 2 episodes and 800 of 500,000 frames"
    for words in ([own, part], [own, "--baseline", part]):
        with pytest.raises(ConfigError, match=told):
            main(["scores", *words])
    with pytest.raises(ConfigError, match="c has no episode"):
        main(["scores", written(tmp_path / "c")])


def test_a_table_of_an_earlier_version_is_told(tmp_path: Path) -> None:
    new = written(tmp_path / "new", rows("pong", [0.0]))
    old = pyarrow.parquet.read_table(new).drop_columns(["settings", "complete"])
    pyarrow.parquet.write_table(old, tmp_path / "old")
    message = "old lacks the columns settings, complete: an earlier .*; play the phase again"
    with pytest.raises(ConfigError, match=message):
        main(["scores", str(tmp_path / "old")])


def test_best_beside_last_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = written(tmp_path / "a", rows("pong", [0.0], checkpoint="runs/a/best.ckpt"))
    per = written(tmp_path / "b", rows("pong", [0.0], checkpoint="runs/b/last.ckpt"))
    with pytest.warns(UserWarning, match=r"of a run's best\.ckpt, others of last\.ckpt"):
        main(["scores", own, "--baseline", per])
    assert "of DQN, ER, PSER over DQN, ER, PSER (baseline): median" in capsys.readouterr().out


@pytest.mark.parametrize("score", ["nan", "inf", "-inf", "-5", "17667.9", "20000", "x"])
@pytest.mark.parametrize("verb", ["scores", "atari"])
def test_no_random_play_scores_that_in_video_pinball(verb: str, score: str) -> None:
    with pytest.raises(ConfigError, match=f"--video-pinball-random: .*{score[:5]}"):
        main([verb, "any", f"--video-pinball-random={score}"])


def test_a_summary_of_one_checkpoint() -> None:
    text = played_text(rows("pong", [14.6, -20.6]))
    assert text == (
        "best.ckpt: written after 500 steps\n"
        "Atari/Pong, 2 episodes, 200 steps; ε 0.001, up to 30 no-ops\n"
        "score -3.0 ± 17.6  (-20.6 to 14.6)\n"
        "human-normalised 50.1 %  (random -20.7, human 14.6)"
    )
    assert played_text(rows("air_raid", [1.0])).endswith(
        "no human score of air_raid to compare with"
    )
