from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import frames
from bench.cheetah import EPISODE
from bench.effort import Effort
from bench.frames import SIDE, STACK, frame_store

FRAME = SIDE * SIDE


def test_one_frame_a_step_is_stored_and_stacks_come_out_as_they_went_in(tmp_path: Path) -> None:
    with frame_store(tmp_path / "s", EPISODE + 1) as store:
        assert store.n_steps == 2 * EPISODE
        assert len(store.segments) == 1
        assert FRAME <= store.schema.row_bytes < FRAME + 100
        stored = sum(file.stat().st_size for file in store.path.rglob("*") if file.is_file())
        assert stored < 1.3 * store.n_rows * FRAME
        with store.replay(store.n_steps, fields=("observation", "next_observation")) as view:
            batch = view.sample(16)
            assert batch.observation.shape == (16, STACK, SIDE, SIDE)
            np.testing.assert_array_equal(batch.observation[:, 1:], batch.next_observation[:, :-1])
            assert (batch.observation[:, -1] != batch.observation[:, -2]).mean() > 0.9


def test_a_figure_of_the_bytes_that_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_STEPS", EPISODE)
    figure, beside_memory = frames.measure(tmp_path, Effort(0.0, curves=False, compiled_loop=False))
    assert figure.name == "draw a batch of 32 stacks"
    assert figure.target == 1.3
    assert figure.limit_name == "copying as many bytes out of the same maps"
    assert beside_memory.limit_name == "copying as many bytes out of memory"
    assert beside_memory.target is None
    assert beside_memory.value == figure.value
    assert figure.value.median > 0
    assert figure.details["copied_bytes"] == 5 * FRAME
    assert figure.details["window"] == EPISODE
