"""What stands in a run's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import storage
from pipeline.resumption import resumption
from pipeline.run_folder import RunFolder
from storage.errors import CheckpointError, ConfigError
from tests.storage.zoo import tiny_spec


@pytest.mark.parametrize("text", [b"", b"agent: {kind: vra", b"\xff\xfe", b"just text"])
def test_damaged_settings_are_named(tmp_path, text):
    (tmp_path / "config.yaml").write_bytes(text)
    with pytest.raises(ConfigError, match=r"config\.yaml is damaged"):
        RunFolder(tmp_path).settings()


LEFT = ["", ".store.17.creating/steps.zarr", "store", "config.yaml.17.0", "checkpoints/l.ckpt.17.3"]
"""What a kill in the first second leaves; a name with a dot at its end is a file."""


@pytest.mark.parametrize("left", LEFT)
def test_what_a_kill_leaves_before_the_first_step_is_nothing(tmp_path: Path, left: str) -> None:
    path = tmp_path / "run"
    (path / left).mkdir(parents=True)
    if left[-1:].isdigit():
        (path / left).rmdir()
        (path / left).write_bytes(b"half")
    with pytest.raises(ConfigError, match="took no step; start it again"):
        RunFolder.existing(path)
    (path / "config.yaml").write_bytes(b"")
    folder = RunFolder.unused(path)
    with pytest.raises(CheckpointError, match="It took no step, so start it again by"):
        resumption(folder)
    folder.clear()
    assert os.listdir(path) == ["config.yaml"]


def test_an_empty_store_is_not_said_to_hold_steps(tmp_path: Path) -> None:
    path = tmp_path / "run"
    (path / "store").mkdir(parents=True)
    (path / "metrics.csv").touch()
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"exists already: choose another --name$"):
            RunFolder.unused(path)
        with pytest.raises(CheckpointError, match=r"Start it again under another --name$"):
            resumption(RunFolder(path))
        if not any((path / "store").iterdir()):
            storage.create(path / "store", tiny_spec()).close()
    (path / "store/steps.zarr/zarr.json").write_bytes(b"damaged")
    with pytest.raises(ConfigError, match="holds steps: learn from them by --offline"):
        RunFolder.unused(path)
