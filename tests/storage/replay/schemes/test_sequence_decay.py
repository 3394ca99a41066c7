"""PSER's decay against the reference's numbers and a dictionary that does it step by step."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings
from tests.storage.replay.lives import Lives
from tests.storage.replay.priority_model import (
    PriorityModel,
    assert_fresh,
    batch_of,
    priorities,
    set_priorities,
    tree_weights,
)

F4 = np.float32
EXACT = PrioritySettings(epsilon=0.0)
MAX, ADD = SequenceSettings(decay=0.4), SequenceSettings(decay=0.4, mode="add")


class Played:
    """A view of fresh episodes, and their steps numbered through."""

    def __init__(self, made: Lives, lengths, sequences, priorities_=EXACT, lost=(), **options):
        flags = np.isin(np.arange(sum(lengths)), list(lost))
        parts = np.split(flags, np.cumsum(lengths)[:-1])
        self.lived = [made.episode(part.tolist())[1] for part in parts]
        self.steps = [step for episode in self.lived for step in episode.steps]
        self.view = made.view(priorities=priorities_, sequences=sequences, **options)

    def start(self, values, largest: float = 1.0) -> Played:
        set_priorities(self.view, F4(values), largest)
        return self

    def feed(self, errors: dict[int, float]) -> np.ndarray:
        """Feed one batch back; gives all priorities."""
        batch = batch_of([self.steps[n] for n in errors])
        self.view.feed_back(batch, priority_error=F4(list(errors.values())))
        assert_fresh(self.view)
        return self.now()

    def now(self) -> np.ndarray:
        stored = priorities(self.view, self.steps)
        np.testing.assert_allclose(tree_weights(self.view), stored.astype(float) ** 0.6, rtol=1e-13)
        return stored


@pytest.fixture
def play(tmp_path):
    made = []

    def make(lengths=(8,), sequences=MAX, priorities_=EXACT, *, life_loss=True, **options):
        made.append(Lives(tmp_path / f"store{len(made)}", life_loss=life_loss))
        return Played(made[-1], lengths, sequences, priorities_, **options)

    yield make
    for one in made:
        one.close()


def assert_close(found, wanted) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


# --- the reference's numbers ---------------------------------------------------------------------


def test_max_carries_back_a_window_of_five(play) -> None:
    one = play().start(0.05)
    wanted = [0.05, 0.05, 0.05, 0.064, 0.16, 0.4, 1, 0.05]
    assert_close(one.feed({6: 1}), wanted)
    assert_close(one.feed({7: 0.5}), [*wanted[:7], 0.5])


def test_add_carries_back_a_window_of_five(play) -> None:
    one = play(sequences=ADD).start(0.05)
    assert_close(one.feed({6: 1}), [0.05, 0.06024, 0.0756, 0.114, 0.21, 0.45, 1, 0.05])
    assert_close(one.feed({7: 0.5}), [0.05, 0.06024, 0.08072, 0.1268, 0.242, 0.53, 1, 0.5])


@pytest.mark.parametrize(
    ("sequences", "near"), [(MAX, [0.16, 0.4, 1, 0.05]), (ADD, [0.21, 0.45, 1, 0.05])]
)
def test_nothing_reaches_the_episode_before(play, sequences, near) -> None:
    one = play((4, 4), sequences).start(0.05)
    assert_close(one.feed({6: 1}), [0.05] * 4 + near)


def test_add_stops_at_the_largest_priority_ever(play) -> None:
    one = play((5,), ADD).start([0.05, 0.05, 0.9, 0.9, 0.9])
    assert_close(one.feed({4: 1}), [0.0756, 0.114, 1, 1, 1])
    one = play((5,), MAX).start([0.05, 0.05, 0.9, 0.9, 0.9])
    assert_close(one.feed({4: 1}), [0.05, 0.064, 0.9, 0.9, 1])


def test_two_peaks_in_the_manner_of_the_papers_figure(play) -> None:
    one = play((14,), SequenceSettings(decay=0.65)).start(0.01)
    first = [0.04902, 0.07542, 0.11603, 0.17851, 0.27463, 0.4225, 0.65, 1]
    np.testing.assert_allclose(one.feed({7: 1}), first + [0.01] * 6, atol=5e-6)
    second = [0.09282, 0.14281, 0.2197, 0.338, 0.52, 0.8]
    np.testing.assert_allclose(one.feed({13: 0.8}), first + second, atol=5e-6)


def small(play, **changes) -> Played:
    settings_ = PrioritySettings(initial="constant", initial_constant=1e-5)
    return play((8,), dataclasses.replace(MAX, **changes), settings_)


def test_decay_and_the_floor_together(play) -> None:
    one = small(play)
    tail = [1.00001, 1e-5]
    first = [1e-5, 0.0102401024, 0.025600256, 0.06400064, 0.1600016, 0.400004]
    assert_close(one.feed({6: 1}), first + tail)
    assert_close(one.feed({5: 0}), [0.0028672287, *first[1:5], 0.2800028, *tail])
    third = [0.0092161024, 0.023040256, 0.05760064, 0.1440016, 0.360004, 0.90001]
    assert_close(one.feed({5: 0.9}), third + tail)


@pytest.mark.parametrize("errors", [{6: 1, 5: 0}, {5: 0, 6: 1}])
def test_a_batch_in_any_order_keeps_what_was_passed_down(play, errors) -> None:
    """The authors' sequential order 6, 5 with the old priorities would leave 1e-5 at step 5."""
    after = small(play).feed(errors)
    assert after[5] == pytest.approx(0.400004, rel=1e-6)
    assert_close(after[:5], [1e-5, 0.0102401024, 0.025600256, 0.06400064, 0.1600016])


# --- boundaries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sequences", [MAX, ADD])
def test_a_life_loss_ends_what_is_carried(play, sequences) -> None:
    """A life was lost at step 3: steps 4 and 5 get their shares, 3 and what is before do not."""
    one = play((8,), sequences, lost=[3]).start(0.01)
    after = one.feed({6: 1})
    assert (after[:4] == F4(0.01)).all()
    assert (after[4:6] > F4(0.1)).all()
    again = one.feed({3: 1})
    assert again[2] == pytest.approx(0.4 + (0.01 if sequences is ADD else 0), rel=1e-6)
    assert again[4:].tolist() == after[4:].tolist()


@pytest.mark.parametrize("mode", ["max", "add"])
def test_life_losses_can_be_overlooked(play, mode) -> None:
    sequences = dataclasses.replace(MAX, mode=mode, stop_at_life_loss=False)
    found = play((8,), sequences, lost=[3, 5]).start(0.01).feed({6: 1})
    plain = play((8,), sequences, life_loss=False).start(0.01).feed({6: 1})
    assert found.tolist() == plain.tolist()
    assert found[3] > 0.06


@pytest.mark.parametrize("sequences", [MAX, ADD])
def test_a_store_without_lives(play, sequences) -> None:
    assert play((8,), sequences, life_loss=False).start(0.01).feed({6: 1})[2] > 0.02


@pytest.mark.parametrize("mode", ["max", "add"])
@pytest.mark.parametrize(("window", "reached"), [(0, 0), (1, 1), (3, 3), (7, 6), (100, 6)])
def test_the_window_cuts_off(play, mode, window, reached) -> None:
    sequences = SequenceSettings(decay=0.9, window=window, mode=mode)
    after = play((8,), sequences).start(1e-3).feed({6: 1})
    assert (after > F4(1e-3)).tolist() == [n >= 6 - reached and n != 7 for n in range(8)]


def test_no_decay_at_all(play) -> None:
    for decay in (0.0, 1e-30):
        for mode in ("max", "add"):
            sequences = SequenceSettings(decay=decay, window=4, mode=mode)
            after = play((8,), sequences).start(0.25).feed({6: 1})
            assert after.tolist() == [0.25] * 6 + [1, 0.25]


@pytest.mark.parametrize("sequences", [MAX, ADD])
def test_the_first_step_of_an_episode_and_of_the_store(play, sequences) -> None:
    one = play((3, 1, 4), sequences).start(0.05)
    after = one.feed({0: 1, 3: 1, 4: 1})
    assert after.tolist() == F4([1, 0.05, 0.05, 1, 1, 0.05, 0.05, 0.05]).tolist()


def test_max_is_not_lowered_by_a_weaker_source(play) -> None:
    one = play((8,)).start([0.05, 0.05, 0.05, 0.05, 0.9, 0.8, 0.05, 0.05])
    assert_close(one.feed({6: 0.5}), [0.05, 0.05, 0.05, 0.05, 0.9, 0.8, 0.5, 0.05])


def test_the_floor_decays_too(play) -> None:
    one = play((8,)).start([0.01] * 6 + [1, 0.01])
    assert_close(one.feed({6: 0}), [0.01, 0.01, 0.01792, 0.0448, 0.112, 0.28, 0.7, 0.01])


def test_sources_in_a_row_add_what_they_had_before(play) -> None:
    """Steps 5, 6 and 7 in one batch: each gives its new priority, none what it was given."""
    one = play((8,), SequenceSettings(decay=0.5, window=2, mode="add")).start(0.0625, 100.0)
    after = one.feed({7: 4, 5: 1, 6: 2})
    wanted = [0.0625] * 3 + [0.0625 + 0.25, 0.0625 + 0.5 + 0.5, 1 + 1 + 1, 2 + 2, 4]
    assert after.tolist() == wanted


def test_steps_of_priority_0_are_raised_and_drawable_again(play) -> None:
    for sequences in (MAX, ADD):
        one = play((4,), dataclasses.replace(sequences, eta=0.0)).start(-0.0)
        assert one.now().tolist() == [0.0] * 4
        assert_close(one.feed({3: 1}), [0.064, 0.16, 0.4, 1])


# --- batches -------------------------------------------------------------------------------------

LENGTHS = (30, 1, 2, 17, 50)
LOST = (4, 5, 20, 33, 34, 60, 61, 77)


@pytest.mark.parametrize("sequences", [MAX, ADD, SequenceSettings(decay=0.9, mode="add")])
def test_the_order_of_a_batch_plays_no_role(play, sequences) -> None:
    rng = np.random.default_rng(0)
    start = rng.exponential(size=100)
    chosen = rng.permutation(100)[:64]
    errors = rng.exponential(size=64)
    found = set()
    for number in range(4):
        one = play(LENGTHS, sequences, lost=LOST).start(start, 5.0)
        order = np.random.default_rng(number).permutation(64)
        found.add(one.feed(dict(zip(chosen[order], errors[order], strict=True))).tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("sequences", [MAX, ADD])
def test_of_a_step_named_twice_only_the_last_error_decays(play, sequences) -> None:
    start = np.full(8, 0.05)
    one, other = play((8,), sequences).start(start), play((8,), sequences).start(start)
    once = one.feed({2: 0.3, 6: 0.5})
    batch = batch_of([other.steps[n] for n in (6, 2, 6, 6, 2)])
    other.view.feed_back(batch, priority_error=F4([9, 8, 7, 0.5, 0.3]))
    assert other.now().tobytes() == once.tobytes()


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A store of 40 random episodes that lose lives, and the episodes."""
    made = Lives(tmp_path_factory.mktemp("lives") / "store", row_budget=64)
    rng = np.random.default_rng(1)
    yield made, [made.episode(rng.random(rng.integers(1, 15)) < 0.15)[1] for _ in range(40)]
    made.close()


SEQUENCES = st.builds(
    SequenceSettings,
    decay=st.sampled_from([0.0, 0.2, 0.4, 0.65, 0.95, 0.999]),
    window=st.sampled_from([0, 1, 2, 5, 40, 5000]),
    mode=st.sampled_from(["max", "add"]),
    eta=st.sampled_from([0.0, 0.7, 1.0]),
    decay_on_insert=st.booleans(),
    stop_at_life_loss=st.booleans(),
)
PRIORITIES = st.builds(
    PrioritySettings,
    epsilon=st.sampled_from([0.0, 1e-5, 0.1]),
    exponent=st.sampled_from(["draws", "priorities"]),
    error=st.sampled_from(["absolute", "huber"]),
    initial_constant=st.sampled_from([0.05, 1.0]),
)
SOURCE = st.tuples(st.integers(0, 10**6), st.floats(0, 5, width=32))
BATCHES = st.lists(st.lists(SOURCE, max_size=40), min_size=1, max_size=5)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 200), SEQUENCES, PRIORITIES, BATCHES)
def test_any_history_equals_the_dictionary_bit_for_bit(
    played, window, sequences, settings_, batches
) -> None:
    made, lived = played
    with made.view(window, priorities=settings_, sequences=sequences, private=True) as view:
        model = PriorityModel(settings_, sequences)
        here = lived[-view.n_episodes :]
        model.enter_all(here)
        for batch in ([], *batches):
            steps = [model.steps()[n % view.n_steps] for n, _ in batch]
            errors = F4([error for _, error in batch])
            view.feed_back(batch_of(steps), priority_error=errors)
            model.feed_back(steps, errors)
            stored = priorities(view, model.steps())
            assert stored.tolist() == [model.priority[step] for step in model.steps()]
            wanted = [model.weight(p) for p in stored]
            np.testing.assert_allclose(tree_weights(view), wanted, rtol=1e-13)
            assert view.state_dict()["scheme_state"]["largest_ever"] == model.largest
            assert_fresh(view)


# --- arrivals and the ring -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["max", "add"])
def test_arriving_steps_decay_where_that_is_asked_for(tmp_path, mode) -> None:
    made = Lives(tmp_path / "store")
    on_insert = dataclasses.replace(MAX, mode=mode, decay_on_insert=True)
    by_error = PrioritySettings(initial="current_td", epsilon=0.0, initial_constant=0.01)
    view = made.view(priorities=by_error, sequences=on_insert)
    record, lived = made.episode([False] * 2 + [True] + [False] * 5)
    errors = F4([0.25, 0.5, 0.25, 0, 0, 0, 2, 0.25])
    view.admit(record, np.zeros(9, F4), priority_error=errors)
    if mode == "max":
        wanted = [0.25, 0.5, 0.25, 0.128, 0.32, 0.8, 2, 0.25]
    else:
        f = 0.4 ** np.arange(6)
        wanted = [0.25 + 0.5 * f[1] + 0.25 * f[2], 0.5 + 0.25 * f[1], 0.25]
        wanted += [2 * f[3] + 0.25 * f[4], 2 * f[2] + 0.25 * f[3], 2 * f[1] + 0.25 * f[2]]
        wanted += [2.0, 0.25]
    assert_close(priorities(view, lived.steps), wanted)
    assert_fresh(view)
    again = made.view(priorities=by_error, sequences=on_insert, private=True)
    assert_close(priorities(again, lived.steps), wanted)
    made.close()


@pytest.mark.parametrize("mode", ["max", "add"])
def test_what_left_the_window_gets_nothing(tmp_path, mode) -> None:
    """The episode before a source's has left; its rows keep what was stored, its places are new."""
    made = Lives(tmp_path / "store")
    view = made.view(window=3, priorities=EXACT, sequences=dataclasses.replace(MAX, mode=mode))
    records = [made.episode([False] * 4) for _ in range(3)]
    for record, _ in records:
        view.admit(record, np.zeros(5, F4))
    set_priorities(view, 0.05, 1.0)
    column = made.store.overlay("main").segment(records[0][0].segment, 15)
    assert (view.forget(), view.forget()) == (4, 4)
    before = column.array("priority").copy()
    view.feed_back(batch_of(records[2][1].steps[:2]), priority_error=F4([1, 0.5]))
    after = column.array("priority")
    assert after[:10].tobytes() == before[:10].tobytes()
    assert after[10:12].tolist() == [F4(1.0), 0.5]
    made.close()


@pytest.mark.parametrize("mode", ["max", "add"])
def test_an_episode_across_the_end_of_the_ring(tmp_path, mode) -> None:
    """Positions 1000 … 1099 of a ring of 1024 are one episode; priorities cross its end."""
    made = Lives(tmp_path / "store")
    sequences = SequenceSettings(decay=0.95, window=60, mode=mode)
    view = made.view(window=100, priorities=EXACT, sequences=sequences)
    model = PriorityModel(EXACT, sequences)
    for _ in range(11):
        record, lived = made.episode([False] * 100)
        view.admit(record, np.zeros(101, F4))
        model.enter(lived)
        while view.forget():
            del model.episodes[0]
    assert view._window.ends.tolist() == [900, 1100]
    set_priorities(view, 0.001, 1.0)
    model.priority = dict.fromkeys(model.steps(), F4(0.001))
    for step, error in ((40, 1.0), (25, 0.7), (24, 0.8), (23, 0.9), (99, 0.4)):
        drawn = lived.steps[step : step + 1]
        view.feed_back(batch_of(drawn), priority_error=F4([error]))
        model.feed_back(drawn, [error])
        assert priorities(view, model.steps()).tolist() == [
            model.priority[s] for s in model.steps()
        ]
        assert_fresh(view)
    assert priorities(view, lived.steps[:1])[0] > 0.1
    stored = priorities(view, model.steps()).astype(float)
    np.testing.assert_allclose(tree_weights(view), stored**0.6, rtol=1e-13)
    made.close()


@pytest.mark.parametrize("mode", ["max", "add"])
def test_more_changes_than_one_refresh_takes(play, mode) -> None:
    """A batch that reaches thousands of steps, several times over."""
    sequences = SequenceSettings(decay=0.999, window=3000, mode=mode)
    one = play((4000, 2500), sequences).start(1e-6, 3.0)
    model = PriorityModel(EXACT, sequences, list(one.lived), dict.fromkeys(one.steps, F4(1e-6)))
    model.largest = 3.0
    errors = {3999: 1.0, 3500: 0.7, 2000: 0.5, 6499: 0.2, 5100: 1.5, 900: 0.1}
    found = one.feed(errors)
    model.feed_back([one.steps[n] for n in errors], F4(list(errors.values())))
    assert found.tolist() == [model.priority[step] for step in one.steps]
