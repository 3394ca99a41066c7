from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.cheetah import EPISODE, spec
from bench.own_buffer import FIELDS, own_buffer, set_priorities
from bench.sampling import filled_store, row_bytes

STEPS = 2 * EPISODE


def test_a_full_view_with_the_peers_fields(tmp_path: Path) -> None:
    with own_buffer(tmp_path / "s", STEPS, "uniform") as buffer:
        batch = buffer.draw(64)
        assert [name for name in FIELDS if not batch.has(name)] == []
        assert batch.observation.dtype == batch.next_observation.dtype == np.float32
        assert row_bytes(buffer.view) == 4 * (17 + 6 + 17) + 8 + 2
        assert buffer.view.n_steps == STEPS


def test_whole_episodes_enter_and_the_oldest_leave(tmp_path: Path) -> None:
    with own_buffer(tmp_path / "s", STEPS, "per") as buffer:
        before = set(buffer.draw(512).segment.tolist())
        for _ in range(EPISODE - 1):
            buffer.append()
        assert buffer.view.n_steps == STEPS
        buffer.append()
        assert buffer.view.n_steps == STEPS + EPISODE
        for _ in range(2 * EPISODE):
            buffer.append()
        assert buffer.view.n_steps == STEPS + EPISODE
        assert not before & set(buffer.draw(512).segment.tolist())


def test_every_step_has_a_random_priority_and_updates_change_them(tmp_path: Path) -> None:
    with own_buffer(tmp_path / "s", STEPS, "per") as buffer:
        batch = buffer.draw(512).copy()
        stored = buffer.view.read("priority", batch.segment, batch.row)
        assert 0.01 <= stored.min() < 0.05
        assert 0.95 < stored.max() <= 1.0001
        assert len(np.unique(stored)) > 300
        buffer.update(batch, np.full(512, 0.25, np.float32))
        changed = buffer.view.read("priority", batch.segment, batch.row)
        np.testing.assert_allclose(changed, 0.25 + 1e-5, rtol=1e-6)


def test_priorities_of_an_overlay_serve_other_schemes(tmp_path: Path) -> None:
    with filled_store(tmp_path / "s", STEPS, spec(np.float32)) as store:
        set_priorities(store, STEPS)
        rows = np.array([r for r in range(2 * EPISODE + 1) if r != EPISODE])
        segments = np.zeros_like(rows)
        with store.replay(STEPS, "pser", private=True) as view:
            stored = view.read("priority", segments, rows)
        assert stored.min() >= 0.01
        counts, _ = np.histogram(stored, bins=4, range=(0.01, 1.0001))
        assert (abs(counts - STEPS / 4) < 150).all()
