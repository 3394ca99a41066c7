"""Prioritized views over long lives: forgetting, opening again, copies and checkpoints."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from storage.replay import ReplayView
from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings
from tests.storage.replay.priority_model import (
    assert_fresh,
    batch_of,
    identities,
    priorities,
    set_priorities,
    steps_of,
    tree_bytes,
    tree_of,
    tree_weights,
    view_steps,
)

F4 = np.float32


def open_step(made) -> None:
    """A step of the episode in lane 1, which never ends."""
    made.writer.step(
        1,
        action=np.zeros(2, F4),
        reward=0.0,
        observation=made.observation(0.0),
        terminated=False,
        truncated=False,
    )


@pytest.mark.parametrize("forget", ["oldest", "most_far", "largest_divergence"])
@pytest.mark.parametrize("scheme", ["per", "pser"])
def test_no_other_row_is_ever_drawn(filler, scheme, forget) -> None:
    """A ring of 1024 that wraps three times and then grows: steps of the window and no others."""
    made = filler(row_budget=700, lanes=2)
    made.writer.begin(1, made.observation(0.0))
    view = made.view(window=600, scheme=scheme, forget=forget, seed=1)
    rng = np.random.default_rng(0)
    capacities, wrapped, alive = set(), 0, {}
    for number in range(260):
        record = made.episode(int(rng.integers(1, 40)))
        view.admit(record, rng.normal(size=record.length + 1).astype(F4))
        open_step(made)
        alive[record.segment, record.start] = steps_of(record)
        if number == 200:
            view.window = 2000
        while view.forget():
            pass
        kept = {(int(row[0]), int(row[2])) for row in view._window.identities()}
        alive = {key: steps for key, steps in alive.items() if key in kept}
        window = {step for steps in alive.values() for step in steps}
        assert len(window) == view.n_steps
        batch = view.sample(min(64, view.n_steps))
        assert set(identities(batch)) <= window
        errors = rng.exponential(size=len(batch)) * (rng.random(len(batch)) < 0.8)
        view.feed_back(
            batch,
            priority_error=errors,
            divergence=errors.astype(F4),
            importance_ratio=np.exp(errors).astype(F4),
        )
        capacities.add(tree_of(view).capacity)
        head, tail = view._window.ends
        wrapped += (head % 1024) > (tail % 1024)
    assert capacities == {1024, 2048}
    assert wrapped > 20
    assert_fresh(view)
    stored = priorities(view, view_steps(view)).astype(float)
    np.testing.assert_allclose(tree_weights(view), np.abs(stored) ** 0.6, rtol=1e-13)


@pytest.mark.parametrize("scheme", ["per", "pser"])
def test_a_store_of_uniform_replay_opens_under_priorities(four, scheme) -> None:
    with four.view() as before:
        before.feed_back(before.sample(9), value=np.ones(9, F4))
    settings = PrioritySettings(initial_constant=2.5)
    view = four.view(scheme=scheme, priorities=settings)
    assert view.n_steps == 9
    assert priorities(view, view_steps(view)).tolist() == [2.5] * 9
    drawn = [step for _ in range(50) for step in identities(view.sample(9))]
    assert set(drawn) == {step for record in four.episodes for step in steps_of(record)}
    assert view.read("value", *np.array(view_steps(view)).T).tolist() == [1.0] * 9


@pytest.mark.parametrize("scheme", ["per", "pser"])
def test_a_view_that_is_opened_again_has_the_same_tree(filler, scheme) -> None:
    made = filler(row_budget=64)
    settings = PrioritySettings(normalise="store", initial_constant=0.1)
    view = made.view(scheme=scheme, priorities=settings)
    for _ in range(30):
        made.episode(11)
    view.advance()
    rng = np.random.default_rng(0)
    for _ in range(20):
        view.feed_back(view.sample(32), priority_error=rng.exponential(size=32))
    kept, drawn = tree_bytes(tree_of(view)), view.draws
    largest = priorities(view, view_steps(view)).max()
    view.close()
    again = made.view(scheme=scheme, priorities=settings)
    again.draws = view.draws = drawn
    assert tree_bytes(tree_of(again)) == kept
    assert again.state_dict()["scheme_state"]["largest_ever"] == largest
    new = made.episode(2)
    again.advance()
    assert priorities(again, steps_of(new)).tolist() == [largest] * 2


@pytest.mark.parametrize("scheme", ["per", "pser"])
def test_a_copy_draws_the_same_and_disturbs_nothing(filler, scheme) -> None:
    made = filler()
    for _ in range(20):
        made.episode(10)
    view = made.view(scheme=scheme, seed=7)
    rng = np.random.default_rng(0)
    for _ in range(5):
        view.feed_back(view.sample(64), priority_error=rng.exponential(size=64))
    copy = pickle.loads(pickle.dumps(view))
    assert copy.draws == 5
    assert tree_bytes(tree_of(copy)) == tree_bytes(tree_of(view))
    for _ in range(5):
        ours, theirs = view.sample(32), copy.sample(32)
        assert identities(ours) == identities(theirs)
        assert ours.sampling_weight.tobytes() == theirs.sampling_weight.tobytes()
    before = tree_bytes(tree_of(view))
    copy.feed_back(copy.sample(32), priority_error=np.full(32, 50.0))
    assert tree_bytes(tree_of(view)) == before
    assert priorities(view, view_steps(view)).max() < 50
    other = made.view(scheme=scheme, seed=8, private=True)
    third = made.view(scheme=scheme, private=True)
    assert identities(other.sample(32)) != identities(third.sample(32))
    copy.close()
    copy.store.close()


@pytest.mark.parametrize("scheme", ["per", "pser"])
@pytest.mark.parametrize("mode", ["max", "add"])
@pytest.mark.parametrize("rounds", [3, 30, 56])
def test_a_restored_view_goes_on_bit_for_bit(filler, tmp_path, scheme, mode, rounds) -> None:
    """After 56 episodes the window lies across the end of its ring."""
    made = filler(row_budget=128)
    options = {
        "window": 400,
        "scheme": scheme,
        "seed": 5,
        "priorities": PrioritySettings(beta_draws=100),
        "sequences": SequenceSettings(mode=mode),
    }
    view = made.view(**options)
    rng = np.random.default_rng(rounds)

    def live(one, records, numbers) -> list[bytes]:
        seen = []
        for record in records:
            one.admit(record, np.zeros(record.length + 1, F4))
            one.forget()
            batch = one.sample(5)
            seen += [part.tobytes() for part in (batch.segment, batch.row, batch.sampling_weight)]
            one.feed_back(batch, priority_error=numbers.exponential(size=5))
        return seen

    live(view, (made.episode(int(rng.integers(5, 40))) for _ in range(rounds)), rng)
    if rounds == 56:
        head, tail = view._window.ends
        assert head % 1024 > tail % 1024
    saved = pickle.loads(pickle.dumps(view.state_dict()))
    again = ReplayView(
        made.store, overlay="resumed", overlay_root=tmp_path, **options, discount=0.9
    )
    again.load_state_dict(saved)
    assert tree_bytes(tree_of(again)) == tree_bytes(tree_of(view))
    assert again.state_dict()["scheme_state"] == view.state_dict()["scheme_state"]
    records = []

    def remembered():
        for _ in range(20):
            records.append(made.episode(int(rng.integers(1, 40))))
            yield records[-1]

    straight = live(view, remembered(), np.random.default_rng(9))
    assert live(again, records, np.random.default_rng(9)) == straight
    assert tree_bytes(tree_of(again)) == tree_bytes(tree_of(view))
    assert again.state_dict()["scheme_state"] == view.state_dict()["scheme_state"]


def test_states_at_every_fill(filler) -> None:
    made = filler()
    view = made.view(scheme="per", window=1000)
    for length in (None, 1, 30, 993, 1):
        if length is not None:
            view.admit(made.episode(length), np.zeros(length + 1, F4))
            errors = np.random.default_rng(length).exponential(size=view.n_steps)
            view.feed_back(batch_of(view_steps(view)), priority_error=errors)
        before = tree_bytes(tree_of(view))
        view.load_state_dict(pickle.loads(pickle.dumps(view.state_dict())))
        assert tree_bytes(tree_of(view)) == before


def test_a_checkpoint_from_before_rings_were_kept(filler) -> None:
    made = filler()
    made.episode(8)
    view = made.view(scheme="per")
    set_priorities(view, F4(np.arange(1, 9)))
    saved = view.state_dict()
    del saved["ring"]
    view.load_state_dict(saved)
    assert priorities(view, view_steps(view)).tolist() == list(range(1, 9))
