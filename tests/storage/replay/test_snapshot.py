"""A view that is saved and restored goes on bit for bit as if it had never stopped."""

from __future__ import annotations

import numpy as np
import pytest

import storage
from storage.errors import CheckpointError
from storage.replay import ReplayView


def live(view, made, rounds: int, rng) -> list[bytes]:
    """Collect, draw, feed back; gives the bytes of every batch."""
    seen = []
    for _ in range(rounds):
        record = made.episode(int(rng.integers(1, 30)), bool(rng.integers(2)))
        view.admit(record, rng.normal(size=record.length + 1).astype(np.float32))
        view.forget()
        batch = view.sample(16)
        where = np.flatnonzero(batch.truncated)
        view.refresh_bootstrap(batch, where, rng.normal(size=where.size).astype(np.float32))
        parts = (batch.segment, batch.row, batch.observation, batch.value, batch.next_value_target)
        seen += [part.tobytes() for part in parts]
        numbers = rng.normal(size=(3, 16)).astype(np.float32)
        view.feed_back(
            batch,
            importance_ratio=np.exp(2 * numbers[0]),
            value=numbers[1],
            divergence=np.abs(numbers[2]),
            far_bound=4.0,
        )
    return seen


def test_a_restored_view_equals_the_one_that_went_on(filler, tmp_path) -> None:
    made = filler(row_budget=64)
    view = made.view(window=150, seed=5)
    made.episode(20)
    view.admit(made.episodes[0], np.zeros(21, np.float32))
    live(view, made, 30, np.random.default_rng(1))
    view.set_targets(0.95, 1.3)
    saved = view.state_dict()
    mark = len(made.episodes)
    straight = live(view, made, 30, np.random.default_rng(2))

    again = ReplayView(
        made.store, window=150, seed=5, overlay="resumed", overlay_root=tmp_path, discount=0.5
    )
    again.load_state_dict(saved)
    assert again.state_dict()["overlay"]["value"].tobytes() == saved["overlay"]["value"].tobytes()
    assert again.n_far == saved["overlay"]["far"].sum()

    class Replayed:
        """Hands out the episodes that were written after the mark, instead of writing more."""

        records = iter(made.episodes[mark:])

        def episode(self, *_: object) -> storage.EpisodeRecord:
            return next(self.records)

    resumed = live(again, Replayed(), 30, np.random.default_rng(2))
    assert resumed == straight
    ends = view.state_dict(), again.state_dict()
    for name in ends[0]["overlay"]:
        assert ends[0]["overlay"][name].tobytes() == ends[1]["overlay"][name].tobytes(), name
    assert ends[0]["episodes"].tolist() == ends[1]["episodes"].tolist()
    assert (view.n_far, view.draws) == (again.n_far, again.draws)
    assert ends[0]["consumed"].tolist() == ends[1]["consumed"].tolist()


def test_an_empty_view_can_be_saved(filler) -> None:
    made = filler()
    view = made.view()
    saved = view.state_dict()
    view.load_state_dict(saved)
    assert view.n_steps == 0
    made.episode(3)
    assert view.advance() == 3


def test_a_checkpoint_of_other_episodes_is_refused(filler) -> None:
    made = filler()
    made.episode(3)
    view = made.view()
    saved = view.state_dict()
    for place, change in ((0, 7), (1, 5), (2, 1), (3, 2)):
        wrong = dict(saved, episodes=saved["episodes"].copy())
        wrong["episodes"][0, place] = change
        with pytest.raises(CheckpointError, match=r"names episode \d+ of segment \d+"):
            view.load_state_dict(wrong)
    with pytest.raises(CheckpointError, match="version 9"):
        view.load_state_dict(dict(saved, version=9))
    short = dict(saved, overlay={name: a[:-1] for name, a in saved["overlay"].items()})
    with pytest.raises(CheckpointError, match="3 rows of priority, its episodes have 4"):
        view.load_state_dict(short)
    assert view.n_steps == 3
