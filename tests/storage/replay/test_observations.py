"""Observations by identity, closing rows among them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from storage.errors import SamplingError
from storage.replay import ReplayView
from storage.replay.observations import Observations
from tests.storage.replay.filler import Filler
from tests.storage.stacked import Stacked, assert_same


def test_plain_observations_are_rows(four: Filler) -> None:
    with four.view() as view:
        seen = Observations(view)
        assert seen.of(np.array([0, 0, 0]), np.array([5, 0, 9])).tolist() == [[5], [0], [103]]
        assert seen.of(np.array([0]), np.array([11])).tolist() == [[201]]


@pytest.mark.parametrize("padding", ["zero", "repeat"])
@pytest.mark.parametrize("keys", [1, 2])
def test_stacks_of_every_row_of_every_episode(tmp_path: Path, padding: str, keys: int) -> None:
    """V of a truncated episode's final state needs the whole stack that the agent saw."""
    way = Stacked(4, padding, keys)
    store = way.create(tmp_path / "store")
    with store.writer() as writer:
        for index, length in enumerate((1, 2, 3, 4, 5, 9)):
            way.write(writer, way.frames(index, length), terminated=False)
    with ReplayView(store, window=100) as view:
        observations = Observations(view)
        for episode in store.iterate_episodes():
            count = len(episode) + 1
            segment = np.full(count, episode.record.segment)
            seen = observations.of(segment, episode.record.start + np.arange(count))
            if keys == 1:
                assert_same(seen, np.array(episode.observation))
            else:
                for key, stacks in episode.observation.items():
                    assert_same(seen[key], np.array(stacks))


def test_rows_that_have_left_are_named(filler: Callable[..., Filler]) -> None:
    made = filler()
    made.episode(4, True)
    with made.view(window=4) as view:
        observations = Observations(view)
        observations.of(np.array([0]), np.array([4]))
        made.episode(5, True)
        view.advance()
        with pytest.raises(SamplingError, match=r"1 of 2 .* position 1: segment 0, row 4"):
            observations.of(np.array([0, 0]), np.array([6, 4]))
