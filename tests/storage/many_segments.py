"""Writes, reads, replays, hashes, rewinds and verifies a store of many segments under a limit."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import storage
from storage.machine import map_limit
from tests.storage.zoo import Tiny, play, tiny_spec


def maps() -> int:
    """Memory maps of this process now."""
    return len(Path("/proc/self/maps").read_text().splitlines())


def main(path: str, segments: int, files: int) -> None:
    """Says MARK and the most maps that were held when everything has worked."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    store = storage.create(path, tiny_spec())
    writer = store.writer(run="many", row_budget=1, capacity=256)
    steps = 0
    for episode in range(segments):
        steps += play(writer, 0, episode).length
    position = writer.position()
    for episode in range(segments, segments + 8):
        play(writer, 0, episode)
    writer.close()
    before = maps()
    store.refresh()
    assert len(store.segments) == segments + 8
    assert sum(1 for _ in store.iterate_episodes()) == segments + 8
    most = maps() - before
    storage.rewind(store, position, "many")
    assert store.n_episodes == segments
    with store.writer(run="many", row_budget=1, capacity=256, continue_from=position) as writer:
        assert play(writer, 0, segments).length == Tiny(0, segments).length
    assert len(storage.content_hash(path)) == 64
    with store.replay(10**9, private=True) as view:
        assert view.n_steps == steps + Tiny(0, segments).length
        view.sample(256)
        most = max(most, maps() - before)
    with storage.open(path) as reader:
        assert len(reader.columns["reward"]) == reader.n_rows
        assert reader.columns["reward"][:].shape == (reader.n_rows,)
    print("MARK", most, map_limit(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
