"""Files that are no checkpoint."""

from __future__ import annotations

import pytest
import torch

from storage.errors import CheckpointError
from training.checkpoint import read_checkpoint


@pytest.mark.parametrize(
    "content", [b"", b"torn", b"\x80\x02", b"PK\x03\x04 and no more", bytes(range(200))]
)
def test_bytes_that_are_no_checkpoint_are_named(tmp_path, content):
    path = tmp_path / "last.ckpt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"last\.ckpt cannot be read as a checkpoint"):
        read_checkpoint(path)


def test_another_program_s_checkpoint_is_named(tmp_path):
    torch.save({"state_dict": {}}, tmp_path / "other.ckpt")
    with pytest.raises(CheckpointError, match="holds no Sharpwave agent"):
        read_checkpoint(tmp_path / "other.ckpt")
