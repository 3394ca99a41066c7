"""`sharpwave protocol refer` on runs that a process has trained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import storage
from pipeline.protocol import main
from pipeline.protocol.trained_run import TrainedRun, methods_of
from storage.errors import ConfigError
from storage.layout import Ending


def copied(run: Path, to: Path, *changes: tuple[str, str]) -> Path:
    """A copy of `run` with each `changes` made to its settings."""
    shutil.copytree(run, to)
    text = (to / "config.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (to / "config.yaml").write_text(text)
    return to


def naive_means(run: Path, warmup: int, size: int) -> list[float]:
    """Mean returns of whole episodes, the warm-up's first, straight from the episode table."""
    with storage.open(run / "store") as store:
        table = store.episodes.sort_by("end_time").to_pylist()
    step, bins = 0, dict[int, list[float]]()
    for row in table:
        step += row["length"]
        if row["ending"] in ("terminated", "truncated"):
            number = 0 if step <= warmup else (step - warmup - 1) // size + 1
            bins.setdefault(number, []).append(row["return"])
    return [float(np.mean(bins[number])) for number in sorted(bins)]


def test_two_seeds(compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = tmp_path / "bins.parquet", tmp_path / "bins.png"
    runs = [str(compared / name) for name in ("small", "second")]
    main(["refer", *runs, "--bin=300", f"--output={table}", f"--picture={picture}"])
    out = capsys.readouterr().out
    assert out.startswith("InvertedPendulum-v5, V-RACER, ReF-ER: 2 seeds (0, 1)\n")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines()]
    assert ["1", "1 to 300", "201 to 500"] in [line[:3] for line in lines]
    assert ["warm-up", "–", "1 to 200"] in [line[:3] for line in lines]
    assert f"table: {table}    picture: {picture}" in out
    assert picture.stat().st_size > 10_000
    rows = pyarrow.parquet.read_table(table).to_pylist()
    assert [row["bin"] for row in rows] == [0, 1, 2, 3]
    ours = [naive_means(compared / name, 200, 300) for name in ("small", "second")]
    assert [row["run_means"] for row in rows] == [list(pair) for pair in zip(*ours, strict=True)]
    for row in rows:
        low, high = sorted(row["run_means"])
        assert row["mean_return"] == pytest.approx((low + high) / 2)
        assert row["return_20"] == pytest.approx(low + 0.2 * (high - low))
        assert row["return_80"] == pytest.approx(low + 0.8 * (high - low))
    assert [row["complete"] for row in rows] == [True] * 4  # 200 + 3 * 300 = 1,100 steps
    assert (rows[0]["first_step"], rows[3]["last_step"]) == (None, 900)
    assert (rows[0]["last_step_with_warmup"], rows[3]["last_step_with_warmup"]) == (200, 1100)


def test_the_runs_end_is_not_a_return(run: Path) -> None:
    with storage.open(run / "store") as store:
        endings = [store.records(each.id)["ending"] for each in store.segments]
    cut = np.concatenate(endings) == Ending.CUT
    returns = TrainedRun.at(run).returns()
    assert cut.any()
    assert np.array_equal(np.isnan(returns.returns), cut)
    assert returns.entered[-1] == 1100


def test_json_and_default_places(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copied(compared / "small", tmp_path / "small")
    main(["refer", str(run), "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["bin"] for row in rows] == [0, 1]
    assert rows[1]["complete"] is False
    assert (tmp_path / "refer_protocol.parquet").is_file()
    assert (tmp_path / "refer_protocol.png").is_file()


def test_methods_are_told_apart(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    er = copied(
        compared / "small",
        tmp_path / "er",
        ("rule_1: true", "rule_1: false"),
        ("rule_2: true", "rule_2: false"),
        ("scheme: uniform", "scheme: per"),
        ("beta: 0.4", "beta: 0.5"),  # uniform draws have no use for it
    )
    main(
        [
            "refer",
            str(compared / "small"),
            str(er),
            "--bin=500",
            f"--output={er}.parquet",
            f"--picture={er}.png",
        ]
    )
    out = capsys.readouterr().out
    assert "V-RACER, ReF-ER: 1 seed (0)" in out
    assert "V-RACER, ER, PER: 1 seed (0)" in out
    told = "these runs differ in agent.refer.rule_1, agent.refer.rule_2, replay.scheme\n"
    assert told in out


def test_runs_of_a_method_must_agree(compared: Path, tmp_path: Path) -> None:
    small = compared / "small"
    other = copied(
        small, tmp_path / "other", ("seed: 0", "seed: 5"), ("window: 1000", "window: 900")
    )
    with pytest.raises(ConfigError, match=r"differ in replay\.window \(1000 and 900\); name runs"):
        main(["refer", str(small), str(other)])
    same = copied(small, tmp_path / "same")
    with pytest.raises(ConfigError, match=r"small and .*same are both .* with seed 0; leave one"):
        main(["refer", str(small), str(same)])
    longer = copied(
        small,
        tmp_path / "longer",
        ("seed: 0", "seed: 6"),
        ("  steps: 1100", "  steps: 2200"),
        ("engine: auto", "engine: eager"),
    )
    (method,) = methods_of([TrainedRun.at(small), TrainedRun.at(longer)])
    assert method.seeds == [0, 6]


def test_variants_of_a_method_are_told_apart(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pser = ("scheme: uniform", "scheme: pser")
    small = compared / "small"
    runs = [
        copied(small, tmp_path / "max", pser),
        copied(small, tmp_path / "add", pser, ("mode: max", "mode: add")),
        copied(small, tmp_path / "more", pser, ("mode: max", "mode: add"), ("seed: 0", "seed: 1")),
    ]
    main(["refer", *map(str, runs)])
    out = capsys.readouterr().out
    variant = "V-RACER, ReF-ER, PSER, replay.sequences.mode"
    assert f"{variant}=max: 1 seed (0)" in out
    assert f"{variant}=add: 2 seeds (0, 1)" in out
    assert "these runs differ in replay.sequences.mode\n" in out
    rows = pyarrow.parquet.read_table(tmp_path / "refer_protocol.parquet").to_pylist()
    assert {row["method"] for row in rows} == {f"{variant}=max", f"{variant}=add"}


def test_what_has_no_training_episodes(compared: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"offline learnt from .* without acting"):
        main(["refer", str(compared / "offline")])
    bare = copied(compared / "small", tmp_path / "bare")
    shutil.rmtree(bare / "store")
    with pytest.raises(ConfigError, match=r"bare/store is not there, which holds the episodes"):
        main(["refer", str(bare)])
    with pytest.raises(ConfigError, match="is no run"):
        main(["refer", str(tmp_path)])
    with pytest.raises(ConfigError, match=r"cannot be written: .*; give another place by --output"):
        main(["refer", str(compared / "small"), f"--output={tmp_path}/none/a.parquet"])


def test_a_picture_that_cannot_be_written_names_the_protocol_s_option(
    compared: Path, tmp_path: Path
) -> None:
    run = copied(compared / "small", tmp_path / "small")
    (tmp_path / "refer_protocol.png").mkdir()
    with pytest.raises(ConfigError) as caught:
        main(["refer", str(run)])
    told = "refer_protocol.png cannot be written: Is a directory; give another place by --picture"
    assert str(caught.value).endswith(told)
