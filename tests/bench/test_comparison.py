from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.comparison import changes, compare_with, earlier_run, print_comparison
from bench.results import BenchError, Line


@pytest.mark.parametrize(
    ("old", "new", "spread", "kind"),
    [
        (1.0, 1.2, 0.01, "slower"),
        (1.2, 1.0, 0.01, "faster"),
        (1.0, 1.08, 0.01, "same"),  # clear, but less than a tenth
        (1.0, 1.3, 0.20, "same"),  # more than a tenth, but within the quartiles
        (1.3, 1.0, 0.20, "same"),
        (1.0, 1.0, 0.0, "same"),
    ],
)
def test_a_change_counts_beyond_a_tenth_and_beyond_both_spreads(
    line: Callable[..., Line], old: float, new: float, spread: float, kind: str
) -> None:
    (change,) = changes([line("a", old, spread=spread)], [line("a", new, spread=spread)])
    assert change.kind == kind


def test_figures_that_only_one_run_has(line: Callable[..., Line]) -> None:
    found = changes([line("gone", 1.0), line("both", 1.0)], [line("both", 1.0), line("new", 2.0)])
    assert [(change.name, change.kind) for change in found] == [
        ("both", "same"),
        ("new", "new"),
        ("gone", "gone"),
    ]


def test_the_table_names_what_became_slower(
    line: Callable[..., Line], capsys: pytest.CaptureFixture[str]
) -> None:
    old = [line("act", 1.0), line("draw", 2.0), line("gone", 1.0)]
    new = [line("act", 1.5, revision="bbb"), line("draw", 1.0, revision="bbb")]
    assert print_comparison(old, new) == 1
    shown = capsys.readouterr().out
    assert "| figure | before: aaa | now: bbb | change | |" in shown
    assert "| act | 1 (0.99–1.01) | 1.5 (1.49–1.51) | +50 % | **slower** |" in shown
    assert "| draw | 2 (1.99–2.01) | 1 (0.99–1.01) | -50 % | faster |" in shown
    assert "1 figures of aaa were not measured now" in shown
    assert shown.endswith("slower than before: act\n")
    assert "another machine" not in shown


def test_cells_of_tables_have_rows_where_something_moved(
    line: Callable[..., Line], capsys: pytest.CaptureFixture[str]
) -> None:
    old = [line("still", 1.0, table="t"), line("moved", 1.0, table="t"), line("act", 1.0)]
    new = [line("still", 1.0, table="t"), line("moved", 2.0, table="t"), line("act", 1.0)]
    assert print_comparison(old, new) == 1
    shown = capsys.readouterr().out
    assert "| moved | 1" in shown
    assert "| act | 1" in shown
    assert "still" not in shown


def test_runs_of_one_revision_are_told_apart_and_quick_ones_from_full_ones(
    line: Callable[..., Line], capsys: pytest.CaptureFixture[str]
) -> None:
    print_comparison([line("act", 1.0, effort="quick")], [line("act", 1.0, effort="full")])
    assert "| figure | before: aaa, quick | now: aaa, full |" in capsys.readouterr().out


def test_nothing_slower_is_status_0_and_another_machine_is_told(
    line: Callable[..., Line], capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_comparison([line("act", 1.0, processor="Q")], [line("act", 1.0)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("note: aaa was measured on another machine")
    assert shown.endswith("slower than before: nothing\n")


def test_a_file_stands_for_its_newest_run(
    line: Callable[..., Line], write: Callable[..., Path], tmp_path: Path
) -> None:
    path = write(line("a", 1.0), line("a", 2.0, run="2"), line("b", 3.0, run="2"))
    found = earlier_run(str(path), tmp_path / "results.jsonl")
    assert [each["ratio"] for each in found] == [2.0, 3.0]


def test_in_the_own_file_the_present_run_is_no_earlier_one(
    line: Callable[..., Line], write: Callable[..., Path]
) -> None:
    path = write(line("a", 1.0), line("a", 2.0, run="2"))
    assert [each["ratio"] for each in earlier_run(str(path), path, but="2")] == [1.0]
    with pytest.raises(BenchError, match="holds no other run"):
        earlier_run(str(write(line("a", 1.0))), path, but="1")


def test_a_revision_stands_for_its_newest_run(
    line: Callable[..., Line], write: Callable[..., Path]
) -> None:
    results = write(
        line("a", 1.0, revision="abc12"),
        line("a", 2.0, run="2", revision="abc12"),
        line("a", 3.0, run="3", revision="fff"),
    )
    assert [each["ratio"] for each in earlier_run("abc", results)] == [2.0]
    with pytest.raises(BenchError, match=r"no file 'zzz' and no run.*has abc12, fff"):
        earlier_run("zzz", results)


def test_neither_file_nor_results(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"zzz cannot be read: No such file"):
        earlier_run("zzz", tmp_path / "results.jsonl")


def test_compare_with_reads_and_prints(
    line: Callable[..., Line],
    write: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write(line("act", 1.0))
    new = [line("act", 1.5, run="2")]
    assert compare_with(str(path), new, tmp_path / "results.jsonl") == 1
    assert "slower than before: act" in capsys.readouterr().out
