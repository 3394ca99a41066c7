from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.cheetah import EPISODE, spec
from bench.memory import available_bytes, bytes_a_step
from bench.sampling import filled_store

STEPS = 8 * EPISODE


def test_what_a_view_by_priority_keeps_more_is_its_tree(tmp_path: Path) -> None:
    with filled_store(tmp_path / "s", STEPS, spec(np.float32)) as store:
        with store.replay(STEPS, "per") as view:
            ring, tree = view._window.steps.nbytes, view._scheme.nbytes
        uniform, per = (STEPS * bytes_a_step(store, STEPS, name) for name in ("uniform", "per"))
    assert ring < uniform < 8 * ring
    small = tree // 20  # what else of the process comes and goes meanwhile
    assert tree - small < per - uniform < tree + 100_000


def test_there_is_some_memory_but_no_petabyte() -> None:
    assert 2**24 < available_bytes() < 2**50
