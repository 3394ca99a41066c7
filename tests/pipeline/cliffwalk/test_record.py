from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.cliffwalk.folder import CliffwalkFolder
from pipeline.cliffwalk.record import SCHEMA, Record
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Outcome, Trial

SAMPLERS = [
    Sampler("uniform"),
    Sampler("oracle"),
    Sampler("per", "max", alpha=0.5),
    Sampler("pser-add", epsilon=1e-3, decay=0.8, eta=0.0),
]


def record(sampler: Sampler, curve: list[tuple[int, float]]) -> Record:
    trial = Trial(7, sampler, learner="linear", start="normal", seed=3)
    return Record(trial, Outcome(90, 40, True, 9e-4, curve), 0.25)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
def test_a_row_gives_its_record_back(sampler: Sampler) -> None:
    made = record(sampler, [(0, 0.5), (90, 9e-4)])
    row = made.row()
    assert list(row) == SCHEMA.names
    assert row["updates_after_goal"] == 50
    assert Record.of(row, made.outcome.curve) == made


def test_a_folder_gives_its_records_back(tmp_path: Path) -> None:
    kept = [record(sampler, [(0, 0.5), (90, 9e-4)]) for sampler in SAMPLERS]
    kept[1] = kept[1].without_curve()
    CliffwalkFolder(tmp_path).save(kept)
    assert list(CliffwalkFolder.at(tmp_path).read().values()) == kept


def test_saving_leaves_nothing_unfinished(tmp_path: Path) -> None:
    CliffwalkFolder(tmp_path).save([record(SAMPLERS[0], [])])
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["curves.parquet", "runs.csv", "runs.parquet"]
