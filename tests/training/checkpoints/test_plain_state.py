from __future__ import annotations

import numpy as np
import pytest
import torch

from storage.errors import CheckpointError
from training.checkpoints.plain_state import as_arrays, as_tensors


def test_state_survives_a_weights_only_file(tmp_path):
    state = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::2],
        "b": [np.array([2**32 - 1], np.uint32), np.array([True, False]), np.uint64([2**64 - 1])],
        "c": {"n": 3, "x": 0.1, "s": "text", "none": None, "scalar": np.int64(7)},
        "empty": np.empty((0, 2), np.int64),
        "pair": (1, 2),
    }
    torch.save(as_tensors(state), tmp_path / "x.pt")
    back = as_arrays(torch.load(tmp_path / "x.pt", weights_only=True))
    assert np.array_equal(back["a"], [[0, 2], [3, 5]])
    assert back["a"].dtype == np.float32
    assert back["b"][0].dtype == np.uint32
    assert back["b"][0][0] == 2**32 - 1
    assert back["b"][1].tolist() == [True, False]
    assert back["b"][2][0] == 2**64 - 1
    assert back["c"] == {"n": 3, "x": 0.1, "s": "text", "none": None, "scalar": 7}
    assert back["empty"].shape == (0, 2)
    assert back["pair"] == [1, 2]


def test_what_is_not_plain_is_refused():
    with pytest.raises(CheckpointError, match="object"):
        as_tensors({"x": object()})
