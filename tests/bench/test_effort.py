from __future__ import annotations

from bench.effort import FULL, QUICK


def test_a_quick_run_repeats_a_quarter_but_never_too_little() -> None:
    assert (FULL.repeats(200), QUICK.repeats(200)) == (200, 50)
    assert QUICK.repeats(4) == 3
    assert QUICK.repeats(4, least=4) == 4
    assert FULL.curves
    assert not QUICK.curves
