from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.cliffwalk.record import Record
from pipeline.cliffwalk.summary import summarize
from pipeline.cliffwalk.table import (
    markdown_table,
    shown_sizes,
    sizes_text,
    table_text,
    warnings_of,
)
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Outcome, Trial

PER, PSER = Sampler("per", "max"), Sampler("pser-max", "max")


def record(n: int, sampler: Sampler, updates: int, converged: bool = True, seed: int = 0) -> Record:
    return Record(Trial(n, sampler, seed=seed), Outcome(updates, 10, converged, 0.0, []), 0.0)


def test_columns_are_the_largest_multiples_of_four() -> None:
    assert shown_sizes(range(2, 17)) == [8, 12, 16]
    assert shown_sizes([2, 3, 4, 6]) == [3, 4, 6]
    assert shown_sizes([8, 8]) == [8]


def test_cells_and_what_is_missing() -> None:
    records = [record(8, PER, 1000 * (seed + 1), seed=seed) for seed in range(3)]
    summaries = summarize([*records, record(12, PSER, 50, converged=False)])
    lines = markdown_table(summaries, after_goal=True).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["sampler", "seeds", "n = 8", "n = 12"]
    assert cells[2] == ["PER, from max", "3 / –", "1,990 (990–2,990)", "–"]
    assert cells[3][1:] == ["– / 1", "–", "∞ (∞–∞), 1 given up"]
    assert len({len(line) for line in lines}) == 1


def test_rules_are_markdown_however_narrow_a_column_is() -> None:
    lines = table_text(["process", "n"], [["PER", "2"], ["uniform", "3"]]).splitlines()
    assert lines == [
        "| process |   n |",
        "| ------- | --: |",
        "| PER     |   2 |",
        "| uniform |   3 |",
    ]


def test_what_a_table_leaves_out_is_told() -> None:
    assert sizes_text(range(2, 17)) == ("The tables show n = 8, 12 and 16 of 15 numbers of states")
    assert sizes_text([4, 4, 6, 8]) == sizes_text([8]) == sizes_text([]) == ""


def test_the_warning_takes_the_largest_common_n() -> None:
    records = [record(8, PER, 800), record(12, PER, 10_000), record(8, PSER, 5_000)]
    (line,) = warnings_of(summarize([*records, record(16, PSER, 9)]))
    assert line == (
        "Warning: with maximum initial priorities, PSER MAX, ρ 0.4, W 5, η 0.7, from max needs "
        "5,000 updates at n = 8, 6.2 times as many as PER (800)."
    )
    (line,) = warnings_of(summarize([*records, record(12, PSER, 90_000)]))
    assert "90,000 updates at n = 12, 9.0 times as many as PER (10,000)" in line


@pytest.mark.parametrize("from_epsilon", [600, 13_000])
def test_what_the_other_initial_priority_costs_is_the_row_s(from_epsilon: int) -> None:
    """Better or worse: nothing is said of epsilon that was not played."""
    records = [record(8, PER, 800), record(8, PSER, 5_000)]
    other = record(8, Sampler("pser-max"), from_epsilon)
    (line,) = warnings_of(summarize([*records, other]))
    assert line.endswith(f"as PER (800). From 1e-06 it needs {from_epsilon:,}.")
    far = record(8, Sampler("pser-max", epsilon=1e-3), from_epsilon)
    assert "From" not in warnings_of(summarize([*records, far]))[0]


def test_small_initial_priorities_are_held_against_uniform_replay() -> None:
    per = [record(8, Sampler("per"), 11_644), record(8, PER, 1_040)]
    (line,) = warnings_of(summarize([*per, record(8, Sampler("uniform"), 4_264)]))
    assert line == (
        "Warning: with small initial priorities, PER, from 1e-06 needs 11,644 updates at n = 8, "
        "2.7 times as many as uniform replay (4,264). From max it needs 1,040."
    )
    assert warnings_of(summarize([*per, record(8, Sampler("uniform"), 20_000)])) == []
    assert warnings_of(summarize([*per, record(8, Sampler("oracle"), 9)])) == []


def test_learners_and_starts_are_not_held_against_one_another() -> None:
    uniform = replace(record(8, Sampler("uniform"), 9).trial, start="normal")
    records = [record(8, Sampler("per"), 11_644), Record(uniform, Outcome(9, 1, True, 0, []), 0.0)]
    assert warnings_of(summarize(records)) == []


def test_no_warning_without_cause() -> None:
    faster = [record(8, PER, 800), record(8, PSER, 700)]
    assert warnings_of(summarize(faster)) == []
    apart = [record(8, PER, 800), record(8, Sampler("pser-max"), 5_000)]
    assert warnings_of(summarize(apart)) == []
    other = [record(8, Sampler("per", "max", alpha=0.5), 800), record(8, PSER, 5_000)]
    assert warnings_of(summarize(other)) == []


def test_a_trial_that_was_given_up_is_worse_than_any() -> None:
    records = [record(8, PER, 800), record(8, PSER, 100, converged=False)]
    (line,) = warnings_of(summarize(records))
    assert "needs ∞ updates at n = 8, more than PER (800)" in line
