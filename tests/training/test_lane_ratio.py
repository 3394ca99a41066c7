"""Updates follow environment steps exactly, whichever the lanes, and never in a burst."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import pytest

import storage
from tests.training.tiny import ROUND, WARMUP, longer, tiny_config
from training.assembly import build, trainer

RATIOS = [Fraction(1), Fraction(1, 4), Fraction(1, 3), Fraction(5, 2)]


def _watched(config, folder, *, resume: bool = False):
    """Runs; (environment steps, updates due, updates done) at each call of ``learn``."""
    module, data = build(config, folder)
    learn, seen = module.learn, []

    def watching(view, steps):
        before = module.counters.updates
        module.counters.environment_steps = steps
        due = module.counters.due()
        learn(view, steps)
        seen.append((steps, due, module.counters.updates - before))

    module.learn = watching
    checkpoint = folder / "checkpoints" / "last.ckpt" if resume else None
    trainer(config, folder).fit(module, data, ckpt_path=checkpoint, weights_only=True)
    return module, seen


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(
    ("lanes", "kind"),
    [(1, "serial"), (4, "serial"), (1, "sync"), (4, "sync"), (1, "async"), (4, "async")],
)
def test_the_ratio_is_exact_after_every_step_of_a_run(tmp_path, lanes, kind, ratio):
    """A last round of 4 steps."""
    steps = 10 * ROUND + 4
    config = tiny_config(steps=steps, lanes=lanes, lane_kind=kind, ratio=float(ratio), window=400)
    module, seen = _watched(config, tmp_path)
    stride = 1 if kind == "serial" else lanes
    origin = module.counters.origin_steps
    assert [taken for taken, _, _ in seen] == list(range(stride, steps + 1, stride))
    assert WARMUP <= origin <= steps - 40
    done = 0
    for taken, due, updates in seen:
        assert due == updates <= math.ceil(ratio * stride)
        done += updates
        assert done == (math.floor((taken - origin) * ratio) if taken > origin else 0)
    assert module.counters.updates == done == math.floor((steps - origin) * ratio)
    with storage.open(tmp_path / "store") as store:
        assert store.n_steps == steps


@pytest.mark.parametrize(
    ("lanes", "kind", "ratios"),
    [(4, "sync", ("1/4", "5/2")), (4, "serial", ("5/2", "1/3")), (1, "serial", ("1/3", "1/3"))],
)
def test_there_is_no_burst_after_resuming(tmp_path, lanes, kind, ratios):
    first, second = (Fraction(ratio) for ratio in ratios)
    config = tiny_config(rounds=10, lanes=lanes, lane_kind=kind, ratio=float(first), window=400)
    before, _ = _watched(config, tmp_path)
    later = longer(config, 14)
    loop = dataclasses.replace(later.loop, updates_per_step=float(second))
    module, seen = _watched(dataclasses.replace(later, loop=loop), tmp_path, resume=True)
    stride = 1 if kind == "serial" else lanes
    assert [taken for taken, _, _ in seen] == list(
        range(10 * ROUND + stride, 14 * ROUND + 1, stride)
    )
    assert max(due for _, due, _ in seen) <= math.ceil(second * lanes)
    assert sum(updates for _, _, updates in seen) == (
        module.counters.updates - before.counters.updates
    )
    origin = before.counters.origin_steps if first == second else 10 * ROUND
    owed = math.floor((14 * ROUND - origin) * second)
    already = before.counters.updates if first == second else 0
    assert module.counters.updates - before.counters.updates == owed - already


def test_the_window_keeps_its_size_where_updates_are_rarer_than_episodes(tmp_path):
    config = tiny_config(rounds=64, ratio=0.02)
    module, data = build(config, tmp_path)
    learn, sizes = module.learn, []

    def watching(view, steps):
        learn(view, steps)
        sizes.append(view.n_steps)

    module.learn = watching
    trainer(config, tmp_path).fit(module, data)
    assert module.counters.updates < module.recent_returns.count
    longest = max(storage.open(tmp_path / "store").records(0)["length"])
    assert config.replay.window - longest < sizes[-1] < config.replay.window + 2 * longest
    assert max(sizes) < config.replay.window + 2 * longest
