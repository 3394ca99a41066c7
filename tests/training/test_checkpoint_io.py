from __future__ import annotations

import pytest
import torch

from tests.training.tiny import run, tiny_config
from training import checkpoint_io
from training.checkpoint_io import AtomicCheckpointIO


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint({"n": 1}, path)

    def dying(checkpoint, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", dying)
    with pytest.raises(KeyboardInterrupt):
        AtomicCheckpointIO().save_checkpoint({"n": 2}, path)
    assert torch.load(path, weights_only=True) == {"n": 1}
    assert [each.name for each in path.parent.iterdir()] == ["last.ckpt"]


def test_runs_write_their_checkpoints_through_it(tmp_path, monkeypatch):
    written = []
    original = checkpoint_io.write_atomic

    def watched(path, data, staging):
        written.append((path.name, staging))
        original(path, data, staging)

    monkeypatch.setattr(checkpoint_io, "write_atomic", watched)
    run(tiny_config(rounds=8, checkpoint_rounds=8), tmp_path)
    assert set(written) == {("last.ckpt", tmp_path / "checkpoints")}
