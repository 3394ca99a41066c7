from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import __main__ as command
from bench.effort import Effort
from bench.figure import Figure
from bench.results import Line, read

TINY = Effort(0.0, curves=False, compiled_loop=False)


def run(*words: str) -> int:
    return command.main(list(words), (TINY, TINY))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names that were measured; nothing is, and each gives a figure of ratio 2."""
    names: list[str] = []

    def measure(wanted: list[str], effort: Effort) -> Iterator[list[Figure]]:
        for name in wanted:
            if name == "parts" and len(wanted) == 2:
                raise KeyboardInterrupt
            names.append(name)
            yield [Figure.of(name, "µs", [4.0], [2.0], "limit")]

    monkeypatch.setattr(command, "measure", measure)
    return names


def test_an_unknown_name_is_one_line_and_status_2(
    measured: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run("acting", "flying")
    shown = capsys.readouterr().err
    assert left.value.code == 2
    assert shown.startswith("error: no benchmark flying; there are appending, sampling")
    assert shown.count("\n") == 1
    assert measured == []


def test_an_unknown_option_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run("--slow")
    shown = capsys.readouterr().err
    assert left.value.code == 2
    assert shown == "error: unrecognized arguments: --slow (see python -m bench --help)\n"


@pytest.mark.parametrize("text", [None, "{", "{}"])
def test_a_bad_file_to_compare_with_is_told_before_anything_is_measured(
    measured: list[str],
    write: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
) -> None:
    path = tmp_path / "none.jsonl" if text is None else write(text)
    assert run("--compare", str(path), "--out", str(tmp_path / "out")) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"error: {path}")
    assert shown.count("\n") == 1
    assert measured == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["/proc/nope", "/dev/null"])
def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(
    measured: list[str], capsys: pytest.CaptureFixture[str], out: str
) -> None:
    assert run("--out", out) == 2
    assert capsys.readouterr().err.startswith(f"error: --out {out} cannot be written: ")
    assert measured == []


def test_all_is_measured_by_default_and_curves_in_a_whole_run_only(
    measured: list[str], tmp_path: Path
) -> None:
    whole = Effort(0.0, curves=True, compiled_loop=True)
    command.main(["--out", str(tmp_path), "--quick"], (whole, TINY))
    assert measured == list(command.NAMES)
    assert {line["effort"] for line in read(tmp_path / "results.jsonl")} == {"quick"}
    measured.clear()
    command.main(["--out", str(tmp_path)], (whole, TINY))
    assert measured == [*command.NAMES, *command.CURVES]


def test_results_table_and_plots(
    measured: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("acting", "sampling", "--out", str(tmp_path)) == 0
    lines = read(tmp_path / "results.jsonl")
    assert [line["name"] for line in lines] == ["acting", "sampling"]
    assert lines[0]["run"] == lines[1]["run"]
    assert lines[0]["effort"] == "full"
    assert (tmp_path / "plots" / "ratios.png").stat().st_size > 1000
    assert "| acting | 4 µs | 2 µs | limit | 2 (2–2) | |" in capsys.readouterr().out


def test_what_was_measured_before_an_interrupt_is_kept(
    measured: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("acting", "parts", "--out", str(tmp_path)) == 130
    assert [line["name"] for line in read(tmp_path / "results.jsonl")] == ["acting"]
    assert capsys.readouterr().err == f"stopped; 1 figures are in {tmp_path / 'results.jsonl'}\n"


@pytest.mark.parametrize(("before", "status"), [(1.0, 1), (2.0, 0)])
def test_what_became_slower_is_the_status(
    measured: list[str],
    line: Callable[..., Line],
    write: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    before: float,
    status: int,
) -> None:
    old = write(line("acting", before))
    assert run("acting", "--compare", str(old), "--out", str(tmp_path / "out")) == status
    assert f"slower than before: {'acting' if status else 'nothing'}" in capsys.readouterr().out


def test_the_own_file_is_compared_as_it_was_before_the_run(
    measured: list[str], line: Callable[..., Line], write: Callable[..., Path]
) -> None:
    path = write(line("acting", 1.0), name="results.jsonl")
    assert run("acting", "--compare", str(path), "--out", str(path.parent)) == 1
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2


def test_parts_are_really_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("appending", "acting", "collecting", "--out", str(tmp_path)) == 0
    text = (tmp_path / "results.jsonl").read_text(encoding="utf-8")
    lines = {line["name"]: line for line in map(json.loads, text.splitlines())}
    assert lines.keys() == {
        "append a step",
        "act",
        "act, beside torch",
        "collect",
        "collect, beside no writer",
        "collect, beside a bare loop",
    }
    for line in lines.values():
        assert 0 < line["value_p25"] <= line["value"] <= line["value_p75"]
        assert line["repeats"] >= 3
        assert line["details"]
    assert lines["append a step"]["most"] == 3.5
    assert lines["collect, beside no writer"]["target"] == pytest.approx(1 / 0.9)
