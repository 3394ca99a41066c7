"""A writer whose segment was taken from it says so, and commits nothing over another's rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import storage
from storage.errors import WriterStateError
from tests.storage.zoo import Tiny, check_tiny, play, tiny_spec

SALVAGE = """
import sys, storage
with storage.open(sys.argv[1], mode="r+").writer():
    pass
"""


def test_a_lock_file_that_was_removed_is_noticed_at_the_commit(tmp_path: Path) -> None:
    """As by `git clean`, or by hand: another writer may have taken up the segment."""
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer()
    first = play(writer, 0, 0)
    tiny = Tiny(0, 1)
    writer.begin(0, tiny.observation(0))
    writer.step(0, **tiny.step(0))
    (tmp_path / "store/locks/000000.lock").unlink()
    subprocess.run([sys.executable, "-c", SALVAGE, str(store.path)], check=True)
    for t in range(1, tiny.length - 1):
        writer.step(0, **tiny.step(t))
    with pytest.raises(WriterStateError, match=r"segment 000000 .* was taken from its writer"):
        writer.step(0, **tiny.step(tiny.length - 1))
    with pytest.raises(WriterStateError, match="was taken from its writer"):
        writer.begin(0, tiny.observation(0))
    writer.abandon(0)
    third = play(writer, 0, 2)
    assert third.segment == 1
    writer.close()
    check_tiny(store, first)
    check_tiny(store, third)


def test_a_log_that_was_replaced_is_noticed_at_the_commit(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer()
    play(writer, 0, 0)
    log = tmp_path / "store/log/000000.log"
    log.with_suffix(".new").write_bytes(log.read_bytes())
    log.with_suffix(".new").replace(log)
    with pytest.raises(WriterStateError, match="lock file or log was removed or replaced"):
        play(writer, 0, 1)
    with pytest.raises(WriterStateError, match="was taken"):
        writer.close()
    assert storage.open(store.path).n_episodes == 1
