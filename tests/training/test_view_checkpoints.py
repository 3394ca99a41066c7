"""A replay view through a checkpoint's file, at every fill level and under every scheme."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import storage
from storage.errors import CheckpointError, EmptyViewError
from tests.storage.zoo import tiny_spec
from training.checkpoints.plain_state import as_arrays, as_tensors

CAPACITY = 100


def _write(store: storage.Store, steps: int, run: str = "first") -> None:
    """Episodes of ten steps, and a last one of what is left."""
    with store.writer(run=run) as writer:
        for start in range(0, steps, 10):
            length = min(10, steps - start)
            writer.begin(0, np.zeros(3), seed=start)
            for step in range(length):
                writer.step(
                    0,
                    action=np.zeros(2, np.float32),
                    reward=float(start + step),
                    observation=np.full(3, float(step)),
                    terminated=step == length - 1,
                    truncated=False,
                )


def _through_a_file(state: dict[str, Any], path: Path) -> dict[str, Any]:
    torch.save(as_tensors(state), path)
    return dict(as_arrays(torch.load(path, weights_only=True)))


@pytest.mark.parametrize("scheme", ["uniform", "per", "pser"])
@pytest.mark.parametrize("fill", [0, 1, 3, 100, 137, 357])
def test_the_next_draws_are_those_of_the_view_that_was_saved(tmp_path, fill, scheme):
    with storage.create(tmp_path / "store", tiny_spec()) as store:
        _write(store, fill)
        options: dict[str, Any] = {"window": CAPACITY, "scheme": scheme, "seed": 3}
        size = min(fill, 64)
        with store.replay(**options) as view:
            for _ in range(3 if fill else 0):
                batch = view.sample(size)
                errors = np.linspace(0.1, 2.0, size, dtype=np.float32)
                view.feed_back(batch, priority_error=errors, importance_ratio=errors)
            state, held = _through_a_file(view.state_dict(), tmp_path / "view"), view.n_steps
            expected = _drawn(view, size)
        with store.replay(**options) as view:
            view.load_state_dict(state)
            assert view.n_steps == held == (fill if fill <= CAPACITY else held)
            assert held < CAPACITY + 10
            assert _drawn(view, size) == expected
            if not fill:
                with pytest.raises(EmptyViewError):
                    view.sample(1)


def _drawn(view: Any, size: int) -> list[bytes]:
    if not size:
        return []
    batches = [view.sample(size).copy() for _ in range(3)]
    return [
        np.asarray(getattr(batch, name)).tobytes()
        for batch in batches
        for name in ("segment", "row", "sampling_weight")
    ]


def test_a_state_of_more_episodes_than_the_store_has_is_refused(tmp_path):
    with storage.create(tmp_path / "full", tiny_spec()) as store:
        _write(store, 100)
        with store.replay(window=CAPACITY) as view:
            state = view.state_dict()
    with storage.create(tmp_path / "fewer", tiny_spec()) as store:
        _write(store, 50)
        with (
            store.replay(window=CAPACITY) as view,
            pytest.raises(CheckpointError, match="which the store does not hold"),
        ):
            view.load_state_dict(state)
