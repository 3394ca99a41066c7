"""Counts of draws live in the ring, and reach the overlay whenever somebody looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import storage
from storage.replay import ReplayView
from storage.replay.draws import mark
from tests.storage.replay.filler import Filler

Identity = tuple[int, int]


def draw(view: ReplayView, size: int, counts: Counter[Identity], last: dict[Identity, int]) -> None:
    batch = view.sample(size)
    for identity in zip(batch.segment.tolist(), batch.row.tolist(), strict=True):
        counts[identity] += 1
        last[identity] = view.draws


def seen(view: ReplayView, identities: list[Identity]) -> list[tuple[int, int]]:
    segment, row = np.array(identities, np.int64).reshape(-1, 2).T
    read = [view.read(name, segment, row).tolist() for name in ("draw_count", "last_drawn")]
    return list(zip(*read, strict=True))


@pytest.mark.parametrize("scheme", ["uniform", "per"])
@pytest.mark.parametrize("forget", ["oldest", "most_far"])
def test_counts_follow_steps_through_growth_and_forgetting(
    filler: Callable[..., Filler], scheme: str, forget: str
) -> None:
    made = filler()
    counts: Counter[Identity] = Counter()
    last: dict[Identity, int] = {}
    made.episode(7)
    with made.view(window=1500, scheme=scheme, forget=forget, overlay="mine") as view:
        for episode in range(60):
            record = made.episode(20 + episode)
            view.admit(record, np.zeros(record.length + 1, np.float32))
            for size in (3, 3, 5):
                draw(view, size, counts, last)
            ratio = np.full(5, 9.0 if episode % 3 else 1.0, np.float32)
            view.feed_back(view.sample(5).copy(), importance_ratio=ratio)
            for identity in zip(*[x.tolist() for x in identity_of(view)], strict=True):
                counts[identity] += 1
                last[identity] = view.draws
            view.forget()
        state = view.state_dict()
        there = [(s, r) for s, r in counts if is_there(view, s, r)]
        assert len(there) > 200
        assert seen(view, there) == [(counts[i], last[i]) for i in there]
        gone = [i for i in counts if i not in set(there)]
        assert gone
    # Behind the close, and for steps that left before it, the overlay's files say the same.
    with storage.open(made.store.path) as store:
        overlay = store.overlay("mine")
        for segment, row in counts:
            columns = overlay.segment(segment, row + 1)
            assert int(columns.array("draw_count")[row]) == counts[segment, row]
            assert int(columns.array("last_drawn")[row]) == last[segment, row]
    with made.view(window=1500, scheme=scheme, forget=forget, overlay="other") as other:
        other.load_state_dict(state)
        assert seen(other, there) == [(counts[i], last[i]) for i in there]


def identity_of(view: ReplayView) -> tuple[np.ndarray, np.ndarray]:
    """The newest batch of five."""
    batch = view._buffers.of(5).batch
    return batch.segment, batch.row


def is_there(view: ReplayView, segment: int, row: int) -> bool:
    try:
        view.read("reward", np.array([segment]), np.array([row]))
    except storage.replay.view.SamplingError:
        return False
    return True


def test_a_batch_shows_counts_from_before_its_own_draw(four: Filler) -> None:
    with four.view(fields=["draw_count", "last_drawn"], private=True) as view:
        assert view.sample(9).extra["draw_count"].tolist() == [0] * 9
        batch = view.sample(9)
        assert batch.extra["draw_count"].tolist() == [1] * 9
        assert batch.extra["last_drawn"].tolist() == [1] * 9


def test_a_count_stays_at_its_largest() -> None:
    most = 2**28 - 1
    assert mark(5 << 28 | most, 6) == 6 << 28 | most
    assert mark(5 << 28 | most - 1, 7) == 7 << 28 | most
    assert mark(0, 2**35 - 1) == (2**35 - 1) << 28 | 1
