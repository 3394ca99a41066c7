"""The in-process refresh of V, ρ, targets and far flags over the whole window."""

from __future__ import annotations

import numpy as np
import pytest

from storage.errors import FeedbackError
from storage.replay import refresh as refreshing


def closing_of(made) -> set[tuple[int, int]]:
    return {(r.segment, r.start + r.length) for r in made.episodes}


@pytest.mark.parametrize("chunk", [7, 8192])
def test_every_row_is_evaluated_once_in_order(filler, monkeypatch, chunk) -> None:
    monkeypatch.setattr(refreshing, "CHUNK_ROWS", chunk)
    made = filler(width=3)
    for length, terminated in ((5, True), (1, False), (9, False), (4, True)):
        made.episode(length, terminated)
    view = made.view()
    seen = []

    def evaluate(rows):
        assert len(rows) == len(rows.closing) <= chunk
        seen.append(
            (rows.rows.observation.copy(), rows.closing.copy(), rows.rows.raw_action.copy())
        )
        value = rows.rows.observation.sum(axis=1).astype(np.float32)
        ratio = np.where(rows.closing, np.nan, 1 + np.abs(value)).astype(np.float32)
        return value, ratio

    view.refresh(evaluate, 2.0)
    observations = np.concatenate([part[0] for part in seen])
    closing = np.concatenate([part[1] for part in seen])
    order = [(r.segment, r.start + t) for r in made.episodes for t in range(r.length + 1)]
    assert observations.tolist() == [made.observations[identity].tolist() for identity in order]
    assert [identity in closing_of(made) for identity in order] == closing.tolist()

    sums = {identity: np.float32(made.observations[identity].sum()) for identity in order}
    steps = [identity for identity in order if identity in made.rewards]
    assert view.n_far == sum(1 + abs(sums[identity]) > 2.0 for identity in steps)
    for record in made.episodes:
        end = (record.segment, record.start + record.length)
        last = (record.segment, record.start + record.length - 1)
        target = np.float32(0.0 if made.terminal[last] else sums[end])
        for t in reversed(range(record.length)):
            identity = (record.segment, record.start + t)
            value = float(sums[identity])
            target = np.float32((value + (made.rewards[identity] - value)) + 0.9 * float(target))
            got = view.read("value_target", *np.array([identity]).T)[0]
            assert got == target


def test_wide_rows_come_in_smaller_chunks(filler, monkeypatch) -> None:
    made = filler()
    for _ in range(3):
        made.episode(5)
    view = made.view()
    monkeypatch.setattr(refreshing, "_CHUNK_BYTES", 7 * view.store.schema.row_bytes + 1)
    sizes = []

    def evaluate(chunk):
        sizes.append(len(chunk))
        return np.zeros(len(chunk), np.float32), np.ones(len(chunk), np.float32)

    view.refresh(evaluate, 5.0)
    assert sizes == [7, 7, 4]


def test_a_failing_evaluation_leaves_targets_that_agree(filler, monkeypatch) -> None:
    monkeypatch.setattr(refreshing, "CHUNK_ROWS", 4)
    made = filler()
    for _ in range(3):
        made.episode(5)
    view = made.view()
    calls = []

    def evaluate(rows):
        calls.append(len(rows))
        if len(calls) == 3:
            raise OverflowError("network gone")
        return np.full(len(rows), 9, np.float32), np.full(len(rows), 0.5, np.float32)

    with pytest.raises(OverflowError):
        view.refresh(evaluate, 5.0)
    before = view.state_dict()["overlay"]
    assert (before["value"] == 9).sum() == 8
    view.recompute_targets()
    assert (
        view.state_dict()["overlay"]["value_target"].tobytes() == before["value_target"].tobytes()
    )


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda n: np.zeros(n, np.float32), "pair of arrays"),
        (lambda n: (np.zeros(n, np.float32), np.full(n, -1, np.float32)), "not negative"),
        (
            lambda n: (np.full(n, np.nan, np.float32), np.ones(n, np.float32)),
            "value must be finite",
        ),
        (lambda n: (np.zeros(n - 1, np.float32), np.ones(n, np.float32)), "shape"),
    ],
)
def test_bad_evaluations_are_refused(filler, result, message) -> None:
    made = filler()
    made.episode(5)
    view = made.view()
    with pytest.raises(FeedbackError, match=message):
        view.refresh(lambda rows: result(len(rows)), 5.0)
    assert view.state_dict()["overlay"]["value"].tolist() == [0.0] * 6
