"""A child that was forked while a writer was open writes nothing of its parent's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import storage
from storage.errors import WriterStateError
from tests.storage.zoo import Tiny, check_tiny, play, tiny_spec


def in_a_child(what) -> int:
    child = os.fork()
    if not child:
        try:
            what()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_does_not_close_its_parents_writer(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer()
    play(writer, 0, 0)
    tiny = Tiny(0, 1)
    writer.begin(0, tiny.observation(0), seed=1)
    writer.step(0, **tiny.step(0))

    def leave() -> None:
        with writer:  # as when the with statement around the fork ends
            pass
        with pytest.raises(WriterStateError, match="of the process that forked this one"):
            writer.begin(0, tiny.observation(0))
        with pytest.raises(WriterStateError, match="of the process that forked this one"):
            writer.step(0, **tiny.step(1))

    assert in_a_child(leave) == 0
    for t in range(1, tiny.length):
        record = writer.step(0, **tiny.step(t))
    assert record is not None
    writer.close()
    assert [each.record.length for each in store.iterate_episodes()] == [
        Tiny(0, 0).length,
        tiny.length,
    ]
    check_tiny(store, record)
    assert storage.verify(store.path).sound
