"""Mapped pages stay under a limit, and a store may be larger than memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import storage
from storage.errors import ConfigError
from storage.replay.page_limit import PageLimit, shared_bytes
from tests.storage.replay.big_store import make_frames

MEMORY = Path("/sys/fs/cgroup/memory")
GROUP_LIMIT = 512 * 2**20


def draw(path: Path, batches: int, limit: int, group: Path | None = None) -> list[int]:
    """Early and late anonymous bytes, the most mapped ones, and steps, of a process of its own."""

    def enter() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    words = ["-m", "tests.storage.replay.big_store", str(path), str(batches), str(limit)]
    done = subprocess.run(
        [sys.executable, *words], preexec_fn=enter, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("MARK")]
    return [int(word) for word in line.split()[1:]]


def test_draws_leave_no_more_pages_than_the_limit(tmp_path: Path) -> None:
    make_frames(tmp_path / "store", 10_000)  # 67 MiB of frames
    free = draw(tmp_path / "store", 500, 0)
    limited = draw(tmp_path / "store", 500, 8 * 2**20)
    assert free[2] > 60 * 2**20
    assert limited[2] < 12 * 2**20


def test_what_a_batch_holds_does_not_depend_on_the_limit(tmp_path: Path) -> None:
    make_frames(tmp_path / "store", 2_000)
    with (
        storage.open(tmp_path / "store") as store,
        store.replay(10_000, private=True) as free,
        store.replay(10_000, private=True, page_limit=4096) as limited,
    ):
        for _ in range(20):
            left, right = free.sample(16), limited.sample(16)
            np.testing.assert_array_equal(left.row, right.row)
            np.testing.assert_array_equal(left.observation, right.observation)


def test_it_looks_seldom_while_there_is_room_and_often_before_the_limit() -> None:
    """Sixty-four draws between two looks at most; a look costs as much as a tenth of a draw."""
    page, resident, looks, drops = 4096, [0], [0], [0]

    def look() -> int:
        looks[0] += 1
        return resident[0]

    def drop() -> None:
        drops[0] += 1
        resident[0] = 0

    pages = PageLimit(1000 * page, drop, look)
    for _ in range(6400):
        pages.drawn()
    assert looks[0] < 110
    most = 0
    for _ in range(10_000):
        resident[0] += page
        most = max(most, resident[0])
        pages.drawn()
    assert drops[0] == pages.drops >= 9
    assert most <= 1002 * page


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "1 GiB"])
def test_a_limit_is_a_number_of_bytes(limit: object) -> None:
    with pytest.raises(ConfigError, match="page_limit"):
        PageLimit(limit, lambda: None)  # type: ignore[arg-type]
    assert shared_bytes() > 2**20


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of GROUP_LIMIT bytes; skips, saying why, where none can be made."""
    made = MEMORY / f"sharpwave-{os.getpid()}"
    try:
        made.mkdir()
        (made / "memory.limit_in_bytes").write_text(str(GROUP_LIMIT))
    except OSError as error:
        pytest.skip(f"no control group of version 1 can be made here: {error}")
    yield made
    made.rmdir()


@pytest.mark.soak
def test_a_store_of_several_times_the_memory_trains(tmp_path: Path, group: Path) -> None:
    """ray-project/ray, google-deepmind/reverb: a replay memory larger than memory."""
    make_frames(tmp_path / "store", 250_000)
    files = sum(file.stat().st_blocks * 512 for file in (tmp_path / "store").rglob("c.*"))
    assert files > 3 * GROUP_LIMIT
    limit = 64 * 2**20
    early, late, most, steps = draw(tmp_path / "store", 10_000, limit, group)
    assert steps == 250_000
    assert late - early < 8 * 2**20
    assert most < 1.5 * limit
    control = (group / "memory.oom_control").read_text()
    assert "oom_kill 0" in control
    assert int((group / "memory.max_usage_in_bytes").read_text()) <= GROUP_LIMIT
    early, late, _, _ = draw(tmp_path / "store", 200, 0, group)  # and by the kernel alone
    assert late - early < 8 * 2**20
