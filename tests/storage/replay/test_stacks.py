"""Stacks in batches, against stacks made one frame at a time."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from storage.errors import SamplingError
from storage.replay import Batch, ReplayView
from tests.storage.stacked import Stacked, assert_same

LENGTHS = (1, 2, 3, 4, 5, 9)
WAYS = [
    Stacked(size, padding, keys)
    for size, padding, keys in itertools.product((1, 4), ("zero", "repeat"), (1, 2))
]


class Written:
    """A store of episodes of these lengths, and its frames by step identity."""

    def __init__(self, path: Path, way: Stacked, lengths: tuple[int, ...], **writing: Any) -> None:
        self.way = way
        self.store = way.create(path)
        self.steps: dict[tuple[int, int], tuple[dict[str, np.ndarray], int]] = {}
        with self.store.writer(**writing) as writer:
            for index, length in enumerate(lengths):
                frames = way.frames(index, length)
                record = way.write(writer, frames, terminated=index % 2 == 0)
                for t in range(length):
                    self.steps[record.segment, record.start + t] = frames, t

    def expected(self, batch: Batch, ahead: int) -> Any:
        """What the environment showed at the batch's steps, or after them."""
        shown = []
        for identity in zip(batch.segment.tolist(), batch.row.tolist(), strict=True):
            frames, t = self.steps[identity]
            shown.append(self.way.shown(frames, t + ahead))
        if self.way.keys == 1:
            return np.stack(shown)
        return {key: np.stack([each[key] for each in shown]) for key in shown[0]}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("window", [4, 5, 16, 10_000])
def test_every_drawn_stack_is_what_the_environment_showed(
    tmp_path: Path, way: Stacked, window: int
) -> None:
    """cpprb: wrong stacks at the newest item, in short episodes, and with several images."""
    written = Written(tmp_path / "store", way, LENGTHS * 3)
    drawn = set()
    with ReplayView(written.store, window=window) as view:
        for _ in range(60):
            batch = view.sample(min(window, 16))
            assert_same(batch.observation, written.expected(batch, 0))
            assert_same(batch.next_observation, written.expected(batch, 1))
            drawn |= set(zip(batch.segment.tolist(), batch.row.tolist(), strict=True))
        assert len(drawn) == view.n_steps


@pytest.mark.parametrize("padding", ["zero", "repeat"])
def test_no_stack_reaches_into_the_episode_before(tmp_path: Path, padding: str) -> None:
    """Dopamine: after a truncated episode, stacks mixed both."""
    written = Written(tmp_path / "store", Stacked(2, padding), (5, 3, 1))
    steps = {identity: t for identity, (_, t) in written.steps.items()}
    with ReplayView(written.store, window=100) as view:
        for _ in range(20):
            batch = view.sample(9)
            for i in range(9):
                if steps[int(batch.segment[i]), int(batch.row[i])]:
                    continue
                older, first = batch.observation[i]
                assert_same(older, first if padding == "repeat" else np.zeros_like(first))
                assert_same(batch.next_observation[i, 0], first)


@pytest.mark.parametrize("fields", [("observation",), ("next_observation", "reward")])
@pytest.mark.parametrize("size", [1, 4])
def test_either_field_alone(tmp_path: Path, fields: tuple[str, ...], size: int) -> None:
    written = Written(tmp_path / "store", Stacked(size, "repeat", 2), LENGTHS)
    with ReplayView(written.store, window=100, fields=fields) as view:
        for _ in range(10):
            batch = view.sample(8)
            ahead = int(fields[0] == "next_observation")
            stacks = getattr(batch, fields[0])
            assert_same(stacks, written.expected(batch, ahead))
            assert stacks["left"].flags.c_contiguous


def test_padding_is_renewed_in_a_buffer_that_is_used_again(tmp_path: Path) -> None:
    """Zeros must be written again where a longer episode's frames stood before."""
    written = Written(tmp_path / "store", Stacked(), (1, 9))
    with ReplayView(written.store, window=100) as view:
        for _ in range(200):
            batch = view.sample(1)
            assert_same(batch.observation, written.expected(batch, 0))


def test_both_fields_share_frames_and_copies_do_not(tmp_path: Path) -> None:
    written = Written(tmp_path / "store", Stacked(), LENGTHS)
    with ReplayView(written.store, window=100) as view:
        batch = view.sample(6)
        assert np.shares_memory(batch.observation, batch.next_observation)
        kept = batch.copy()
        expected = written.expected(batch, 0), written.expected(batch, 1)
        for _ in range(5):
            view.sample(6)
        assert_same(kept.observation, expected[0])
        assert_same(kept.next_observation, expected[1])
        kept.observation[:] = 0
        assert_same(kept.next_observation, expected[1])


def test_frames_of_many_segments_and_other_processes(tmp_path: Path) -> None:
    written = Written(
        tmp_path / "store", Stacked(4, "repeat"), (30,) * 40, row_budget=256, capacity=512
    )
    assert len(written.store.segments) > 2
    with ReplayView(written.store, window=10_000) as view:
        copy = pickle.loads(pickle.dumps(view))
        for each in (view, copy):
            batch = each.sample(64)
            assert len(set(batch.segment.tolist())) > 2
            assert_same(batch.observation, written.expected(batch, 0))
            assert_same(batch.next_observation, written.expected(batch, 1))
        copy.close()


def test_single_frames_by_name(tmp_path: Path) -> None:
    written = Written(tmp_path / "store", Stacked(4, "zero", 2), LENGTHS)
    fields = ("observation.left", "observation")
    with ReplayView(written.store, window=100, fields=fields) as view:
        batch = view.sample(10)
        assert_same(batch.extra["observation.left"], batch.observation["left"][:, -1])
        frames = view.read("observation.right", batch.segment, batch.row + 1)
        expected = [
            written.steps[identity][0]["observation.right"][written.steps[identity][1] + 1]
            for identity in zip(batch.segment.tolist(), batch.row.tolist(), strict=True)
        ]
        assert_same(frames, np.stack(expected))
        with pytest.raises(SamplingError, match="no column"):
            view.read("observation", batch.segment, batch.row)


def test_a_refresh_sees_stacks_of_steps_and_closing_rows(tmp_path: Path) -> None:
    written = Written(tmp_path / "store", Stacked(4, "zero"), LENGTHS)
    seen = []

    def evaluate(chunk: Any) -> Any:
        seen.append((chunk.rows.observation.copy(), chunk.closing.copy()))
        nothing = np.ones(len(chunk), np.float32)
        return nothing, nothing

    with ReplayView(written.store, window=100) as view:
        view.refresh(evaluate, 5.0)
    ((stacks, closing),) = seen
    expected = [
        episode.observation[t]
        for episode in written.store.iterate_episodes()
        for t in range(len(episode) + 1)
    ]
    assert closing.sum() == len(LENGTHS)
    assert_same(stacks, np.stack(expected))
