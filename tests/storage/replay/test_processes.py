"""Views in other processes: loader workers, however they are started."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.storage.replay.filler import drawn_rows


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_draws_after_its_parent_has(filler, method) -> None:
    made = filler()
    for length in (5, 9, 2):
        made.episode(length)
    view = made.view(seed=3)
    view.sample(4)
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        theirs = pool.submit(drawn_rows, view, 4, 10).result(timeout=60)
    assert theirs == drawn_rows(view, 4, 10)


def test_workers_of_different_seeds_draw_different_steps(filler) -> None:
    made = filler()
    made.episode(200)
    sequences = [drawn_rows(made.view(seed=worker), 8, 10) for worker in range(4)]
    assert len({str(sequence) for sequence in sequences}) == 4
    again = [drawn_rows(made.view(seed=worker), 8, 10) for worker in range(4)]
    assert again == sequences


def test_a_reader_sees_steps_appended_after_it_started(filler) -> None:
    import storage
    from storage.replay import ReplayView

    made = filler()
    made.episode(3)
    reader = ReplayView(storage.open(made.store.path), window=100, private=True)
    assert reader.n_steps == 3
    for count in range(1, 5):
        made.episode(2)
        assert reader.advance() == 2
        assert reader.n_steps == 3 + 2 * count
    batch = reader.sample(11)
    for i in range(11):
        identity = (int(batch.segment[i]), int(batch.row[i]))
        assert batch.observation[i] == made.observations[identity]
