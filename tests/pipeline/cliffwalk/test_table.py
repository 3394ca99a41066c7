from __future__ import annotations

from pipeline.cliffwalk.record import Record
from pipeline.cliffwalk.summary import summarize
from pipeline.cliffwalk.table import markdown_table, shown_sizes, warnings_of
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


def test_the_warning_takes_the_largest_common_n() -> None:
    records = [record(8, PER, 800), record(12, PER, 10_000), record(8, PSER, 5_000)]
    (line,) = warnings_of(summarize([*records, record(16, PSER, 9)]))
    assert "from max needs 5,000 updates at n = 8, 6.2 times as many as PER (800)" in line
    (line,) = warnings_of(summarize([*records, record(12, PSER, 90_000)]))
    assert "90,000 updates at n = 12, 9.0 times as many as PER (10,000)" in line


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
