"""What broke views once: each is refused, or leaves everything as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import storage
from storage.errors import (
    CheckpointError,
    ConfigError,
    CorruptStoreError,
    DiskFullError,
    FeedbackError,
    SamplingError,
)
from storage.overlay import Overlay
from tests.storage.replay.filler import Filler


def test_identities_of_different_lengths_are_refused(four: Filler) -> None:
    with four.view(private=True) as view:
        segment = four.episodes[0].segment
        for way in (view.observe, lambda s, r: view.read("reward", s, r)):
            with pytest.raises(SamplingError, match="as many whole numbers"):
                way(np.full(200_000, segment), np.array([0]))
        batch = view.sample(9).copy()
        batch.segment = batch.segment[:1]
        with pytest.raises(FeedbackError, match="1 segments, 9 rows and 9 positions"):
            view.feed_back(batch, value=np.zeros(9, np.float32))


def test_a_read_only_target_is_refused(four: Filler) -> None:
    with four.view(private=True) as view:
        batch = view.sample(9)
        out = np.zeros(9)
        out.flags.writeable = False
        with pytest.raises(SamplingError, match="writable"):
            view.read("reward", batch.segment, batch.row, out)
        assert not out.any()


@pytest.mark.parametrize("scheme", ["uniform", "per", "pser"])
def test_a_closed_view_refuses_to_go_on(four: Filler, scheme: str) -> None:
    view = four.view(scheme=scheme, private=True)
    state = view.state_dict()
    view.close()
    view.close()
    for way in (
        lambda: view.sample(1),
        view.advance,
        lambda: view.admit(four.episodes[0], None),
        lambda: view.load_state_dict(state),
    ):
        with pytest.raises(SamplingError, match="is closed; make another one"):
            way()


def test_an_admission_that_fails_leaves_ring_and_tree_alike(
    filler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = filler(row_budget=1024)
    for _ in range(3):
        made.episode(300)
    with made.view(window=10_000, scheme="per", overlay="mine") as view:
        before = view._window.steps.size
        made.episode(400)
        made.episode(900)

        def full(*_: Any) -> None:
            raise DiskFullError("no space")

        with monkeypatch.context() as patch:
            patch.setattr(Overlay, "_build", full)
            with pytest.raises(DiskFullError):
                view.advance()
        assert view._window.steps.size == before == view._scheme._tree.capacity
        assert view.n_steps == 900
        assert set(view.sample(256).position.tolist()) <= set(range(900))
        assert view.advance() == 1300
        assert view._scheme._tree.capacity == view._window.steps.size > before


@pytest.mark.parametrize(
    "damage",
    [
        {"ring": np.array([2**63 - 100, 1024])},
        {"ring": np.array([0, 2**40])},
        {"ring": np.array([0, 1000])},
        {"draws": -5},
        {"settings": np.array([5.0, np.nan, 1.0])},
        {"consumed": np.array([[0, -3]])},
        {"scheme_state": {"largest_ever": np.nan}},
        {"scheme_state": {"largest_ever": -1.0}},
    ],
)
def test_damaged_states_are_refused(four: Filler, damage: dict[str, Any]) -> None:
    with four.view(scheme="per", private=True) as view:
        state = view.state_dict() | damage
        with pytest.raises(CheckpointError, match="undamaged"):
            view.load_state_dict(state)


def test_a_state_that_lacks_a_part_is_refused(four: Filler) -> None:
    with four.view(private=True) as view:
        state = view.state_dict()
        del state["consumed"], state["episodes"]
        with pytest.raises(CheckpointError, match="lacks episodes, consumed"):
            view.load_state_dict(state)


def test_an_overlay_is_of_one_store(filler: Any, tmp_path: Any) -> None:
    one, other = filler(), filler()
    for made in (one, other):
        made.episode(20)
    with one.view(scheme="per", overlay_root=tmp_path / "run") as view:
        view.feed_back(view.sample(5), priority_error=np.full(5, 77.0))
    for private in (False, True):
        with pytest.raises(ConfigError, match="belongs to the store"):
            other.view(scheme="per", overlay_root=tmp_path / "run", private=private)
    document = tmp_path / "run" / "overlays" / "main.zarr" / "zarr.json"
    for garbage in (b"", b"{}", b"\xff"):
        document.write_bytes(garbage)
        with pytest.raises(CorruptStoreError, match="remove its folder, or name another"):
            one.view(overlay_root=tmp_path / "run")


def test_seeds_and_windows_are_whole_numbers(four: Filler) -> None:
    for seed in (1.5, "a", None, True):
        with pytest.raises(ConfigError, match="give a whole number"):
            four.view(seed=seed, private=True)
    with pytest.raises(SamplingError, match="window=True"):
        four.view(window=True, private=True)


def test_tensors_with_gradients_are_told_what_to_do(four: Filler) -> None:
    torch = pytest.importorskip("torch")
    with four.view(scheme="per", private=True) as view:
        batch = view.sample(4)
        for given in (torch.ones(4, requires_grad=True), torch.ones(4, dtype=torch.bfloat16)):
            with pytest.raises(FeedbackError, match="detach"):
                view.feed_back(batch, priority_error=given)


def test_a_copy_knows_how_often_steps_were_drawn(four: Filler) -> None:
    import pickle

    with four.view(overlay="mine") as view:
        for _ in range(3):
            batch = view.sample(9)
        with pickle.loads(pickle.dumps(view)) as copy:
            assert copy.read("draw_count", batch.segment, batch.row).tolist() == [3] * 9
    assert storage.open(four.store.path).n_episodes == 3
