"""Several runs in one table and one picture."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pipeline.comparison import compare
from pipeline.comparison_table import markdown_table
from pipeline.curve import main
from pipeline.learning_curve import read_learning_curve
from pipeline.run_folder import RunFolder
from storage.errors import ConfigError


def test_a_row_is_what_the_run_s_files_say(run: Path) -> None:
    curve = read_learning_curve(run)
    (row,) = compare([RunFolder(run)], window=5)
    late = curve.schedule_steps > 550
    assert row.name == run.name
    assert row.rules == "ReF-ER"
    assert row.steps == 1100
    assert row.last_return == curve.returns[curve.whole][-5:].mean()
    assert row.far_fraction == curve.far_fraction[late].mean()
    assert row.beta == curve.beta[-1]
    assert row.steps_per_second > 0


def test_two_runs_give_a_table_and_a_picture(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    picture = tmp_path / "both.png"
    main([str(run), str(other), f"--picture={picture}"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:4]] == [run.name, "other"]
    assert picture.stat().st_size > 10_000
    assert not list(tmp_path.glob(".*.new"))


def test_a_run_that_has_logged_nothing_yet_has_dashes(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "young"
    shutil.copytree(run, other)
    (other / "metrics.csv").unlink()
    (row,) = compare([RunFolder(other)])
    assert math.isnan(row.far_fraction)
    assert math.isnan(row.steps_per_second)
    assert "–" in markdown_table([row])


def without_steps(run: Path, copy: Path) -> Path:
    """A copy of `run` as it was before its first episode ended."""
    shutil.copytree(run, copy)
    shutil.rmtree(copy / "store")
    (copy / "metrics.csv").unlink()
    return copy


def torn(run: Path, copy: Path) -> Path:
    """A copy of `run` whose store lost its description."""
    shutil.copytree(run, copy)
    (copy / "store/steps.zarr/zarr.json").write_text("{")
    return copy


def test_what_cannot_be_drawn_is_named_with_the_reason(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    young, broken = without_steps(run, tmp_path / "young"), torn(run, tmp_path / "broken")
    picture = tmp_path / "all.png"
    main([str(young), str(run), str(broken), f"--picture={picture}"])
    out = capsys.readouterr().out
    assert f"not drawn: {young}: no episode has ended yet\n" in out
    assert f"not drawn: {broken}: {broken / 'store'}" in out
    assert f"not drawn: {run}" not in out
    assert [line.split("|")[1].strip() for line in out.splitlines()[2:5]] == [
        *("young", run.name, "broken")
    ]
    assert picture.stat().st_size > 10_000


def test_nothing_to_draw_is_an_error(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    young = [without_steps(run, tmp_path / name) for name in "ab"]
    with pytest.raises(ConfigError, match=r"nothing to draw\. .*/a: no episode .*/b: no episode"):
        main([*map(str, young), f"--picture={tmp_path / 'c.png'}"])
    assert not (tmp_path / "c.png").exists()
    with pytest.raises(ConfigError, match="a has no curve: no episode has ended yet"):
        main([str(young[0])])
    assert "Traceback" not in capsys.readouterr().err


def test_a_run_that_does_not_act_counts_updates(compared: Path) -> None:
    (row,) = compare([RunFolder(compared / "offline")])
    curve = read_learning_curve(compared / "offline")
    assert (row.steps, row.problem) == (600, "")
    assert row.last_return == curve.greedy_returns[-1]
    assert row.steps_per_second > 0
    assert row.beta == curve.beta[-1]


def test_what_is_no_run_among_runs(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no run"):
        main([str(run), str(tmp_path)])


def without(section: str) -> Callable[[Path], None]:
    """Takes a section out of a run's config.yaml."""

    def damage(run: Path) -> None:
        kept = yaml.safe_load((run / "config.yaml").read_text())
        del kept[section]
        (run / "config.yaml").write_text(yaml.safe_dump(kept))

    return damage


def with_setting(name: str, value: object) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        kept = yaml.safe_load((run / "config.yaml").read_text()) | {name: value}
        (run / "config.yaml").write_text(yaml.safe_dump(kept))

    return damage


def with_bytes(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda run: (run / name).write_bytes(content)


def as_folder(run: Path) -> None:
    (run / "metrics.csv").unlink()
    (run / "metrics.csv").mkdir()


def with_last_cell(column: str, cell: str) -> Callable[[Path], None]:
    """Writes `cell` into the last line of metrics.csv."""

    def damage(run: Path) -> None:
        head, *lines = (run / "metrics.csv").read_text().splitlines()
        cells = lines[-1].split(",")
        cells[head.split(",").index(column)] = cell
        (run / "metrics.csv").write_text("\n".join([head, *lines[:-1], ",".join(cells)]))

    return damage


DAMAGES = {
    "no agent": (without("agent"), "config.yaml is damaged: it lacks agent"),
    "no loop": (without("loop"), "config.yaml is damaged: it lacks loop"),
    "no environment": (without("environment"), "it lacks environment"),
    "number for a section": (with_setting("replay", 5), "replay is 5; it must be a mapping"),
    "agent of text": (with_setting("agent", "x"), "agent is 'x'; it must be a mapping"),
    "empty settings": (with_bytes("config.yaml", b""), "holds nothing"),
    "metrics no text": (with_bytes("metrics.csv", b"steps,beta\n\xff"), "is no CSV text"),
    "metrics folder": (as_folder, "metrics.csv cannot be read: Is a directory"),
    "steps": (with_last_cell("steps", "inf"), "'inf' is no number of steps"),
    "return": (with_last_cell("evaluation_return", "abc"), "'abc' is no number"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_run_is_an_error_alone_and_named_among_others(
    kind: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, reason = DAMAGES[kind]
    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    damage(broken)
    with pytest.raises(ConfigError, match=re.escape(reason)):
        main([str(broken)])
    check_named(broken, run, reason, capsys)


def test_a_speed_that_is_no_number(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    with_last_cell("wall_time", "abc")(broken)
    check_named(broken, run, "'abc' is no number", capsys)


def check_named(broken: Path, run: Path, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Asserts that only `broken` is left out of a comparison, for `reason`."""
    capsys.readouterr()
    picture = broken.parent / "all.png"
    assert main([str(broken), str(run), f"--picture={picture}"]) == 0
    refused = [line for line in capsys.readouterr().out.splitlines() if "not drawn" in line]
    assert len(refused) == 1
    assert refused[0].startswith(f"not drawn: {broken}: ")
    assert reason in refused[0]
    assert picture.stat().st_size > 10_000


def test_damaged_runs_alone_are_an_error(run: Path, tmp_path: Path) -> None:
    for name in "ab":
        shutil.copytree(run, tmp_path / name)
        without("agent")(tmp_path / name)
    with pytest.raises(ConfigError, match=r"nothing to draw.*a: .*lacks agent.*b: .*lacks agent"):
        main([str(tmp_path / "a"), str(tmp_path / "b")])
