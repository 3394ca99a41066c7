"""V-RACER's updates: their order, the warm-up's end, schedules and scales."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import storage
from storage.errors import CheckpointError, ConfigError, EmptyViewError, UnsupportedSpaceError
from storage.replay import ReplayView
from tests.training.tiny import ROUND, WARMUP, differences, longer, rows, run, tiny_config
from training.agents.vracer.agent import VRacer
from training.agents.vracer.config import VRacerConfig
from training.assembly import build, trainer
from training.engines.fused_engine import FusedEngine
from training.refer import annealed, beta_rate, far_bound

_WATCHED = (
    "admit",
    "sample",
    "refresh_bootstrap",
    "feed_back",
    "forget",
    "statistics",
    "set_targets",
    "recount_far",
    "refresh",
)


def _watch(monkeypatch) -> list[str]:
    calls: list[str] = []

    def watched(owner, name):
        original = getattr(owner, name)

        def wrapper(self, *arguments, **options):
            calls.append(name)
            return original(self, *arguments, **options)

        monkeypatch.setattr(owner, name, wrapper)

    for name in _WATCHED:
        watched(ReplayView, name)
    watched(FusedEngine, "update")
    return calls


def test_an_iteration_goes_in_the_papers_order(tmp_path, monkeypatch):
    calls = _watch(monkeypatch)
    run(tiny_config(rounds=9, evaluate_every=0), tmp_path)
    began = calls.index("refresh")
    assert calls[began - 2 : began] == ["statistics", "set_targets"]
    assert "sample" not in calls[:began]
    assert "forget" not in calls[calls.index("admit") + 1 : began]
    after = [name for name in calls[began:] if name not in ("admit", "refresh_bootstrap")]
    updates = 9 * ROUND - WARMUP
    expected = ["refresh", "recount_far"]
    for update in range(1, updates + 1):
        expected += ["sample", "update", "feed_back", "forget"]
        if update % 20 == 0:
            expected += ["statistics", "set_targets", "recount_far"]
    assert after == expected
    position = calls.index("refresh_bootstrap")
    assert (calls[position - 1], calls[position + 1]) == ("sample", "update")


def test_the_warmups_end_sets_scales_and_rebuilds_the_whole_window(tmp_path, monkeypatch):
    seen = {}
    original = VRacer.start_learning

    def watched(self, view):
        original(self, view)
        statistics = view.statistics()
        batch = view.sample(16).copy()
        names = ("value", "importance_ratio", "value_target")
        stored = {name: view.read(name, batch.segment, batch.row) for name in names}
        seen.update(agent=self, statistics=statistics, batch=batch, stored=stored)
        raise KeyError("far enough")

    monkeypatch.setattr(VRacer, "start_learning", watched)
    with pytest.raises(KeyError, match="far enough"):
        run(tiny_config(rounds=9), tmp_path)
    agent, statistics, batch = seen["agent"], seen["statistics"], seen["batch"]
    stored = seen["stored"]
    assert agent.observation_scaling.mean == pytest.approx(statistics.mean)
    assert agent.observation_scaling.stdev == pytest.approx(np.sqrt(statistics.variance))
    scale = agent.reward_scaling.value
    assert scale == pytest.approx(np.sqrt(statistics.reward_second_moment))
    values = agent.actor.values(np.asarray(batch.observation, np.float64))
    assert np.array_equal(stored["value"], values)
    assert stored["importance_ratio"] != pytest.approx(np.ones(16))
    target = values + np.minimum(1, stored["importance_ratio"]) * (
        batch.reward / scale + 0.995 * batch.next_value_target - values
    )
    assert stored["value_target"] == pytest.approx(target, abs=2e-6)


def test_beta_and_the_rate_follow_their_schedules(tmp_path, monkeypatch):
    given = []
    original = FusedEngine.update

    def watched(self, batch, schedule):
        given.append({name: float(value) for name, value in schedule.items()})
        return original(self, batch, schedule)

    monkeypatch.setattr(FusedEngine, "update", watched)
    agent = VRacerConfig(hidden=[8], batch_size=16, learning_rate=1e-2, scaling_interval=10)
    module = run(tiny_config(rounds=9, agent=agent), tmp_path)
    refer = agent.refer
    assert len(given) == 44 == module.counters.updates
    for update, schedule in enumerate(given):
        assert schedule["learning_rate"] == pytest.approx(annealed(1e-2, refer.annealing, update))
        assert schedule["far_bound"] == pytest.approx(far_bound(refer, update))
    rate = beta_rate(refer, batch_size=16, window=160, stored=1, learning_rate=1e-2)
    assert [each["beta"] for each in given[:3]] == pytest.approx(
        [0, rate, rate + (1 - rate) * rate]
    )
    assert given[0]["reward_scale"] == given[9]["reward_scale"]


def test_truncated_ends_bootstrap_from_the_value_now(tmp_path):
    config = tiny_config(rounds=16)
    module, data = build(config, tmp_path)
    seen = []

    def watched(view, batch):
        VRacer.refresh_batch(module, view, batch)
        where = np.flatnonzero(batch.truncated)
        final = view.read("observation", batch.segment[where], batch.row[where] + 1)
        values = module.actor.values(np.asarray(final, np.float64))
        assert np.array_equal(batch.next_value_target[where], values)
        ended = np.flatnonzero(batch.terminated)
        assert not batch.next_value_target[ended].any()
        seen.append(len(where))

    module.refresh_batch = watched
    trainer(config, tmp_path).fit(module, data)
    assert sum(seen) > 20


def test_forgetting_keeps_the_window_at_its_size(tmp_path):
    run(tiny_config(rounds=30, window=64), tmp_path)
    stored = [int(row["stored_steps"]) for row in rows(tmp_path)]
    assert 64 <= stored[-1] < 64 + 30
    assert storage.open(tmp_path / "store").n_steps == 30 * ROUND


def test_learning_from_a_fixed_store_changes_only_the_run(tmp_path):
    run(tiny_config(rounds=16), tmp_path / "source")
    store = tmp_path / "source" / "store"
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    from dataclasses import replace

    config = tiny_config(rounds=6, window=1000)
    config = replace(config, replay=replace(config.replay, store=str(store)))
    straight = run(config, tmp_path / "straight")
    assert straight.counters.updates == 6 * ROUND
    assert {path: path.read_bytes() for path in before} == before
    assert (tmp_path / "straight" / "overlays").is_dir()
    run(config, tmp_path / "resumed", max_steps=4)
    resumed = run(config, tmp_path / "resumed", resume=True)
    assert differences(straight.state_dict(), resumed.state_dict()) == []
    assert rows(tmp_path / "straight") == rows(tmp_path / "resumed")
    assert straight.experience_text == f"96 updates on {store}"
    assert (straight.steps, straight.environment_steps) == (96, 0)
    logged = rows(tmp_path / "straight")
    assert [(row["steps"], row["updates"]) for row in logged] == [("96", "96")]
    assert "environment_steps" not in logged[0]
    halved = replace(config, loop=replace(config.loop, updates_per_step=0.5))
    assert run(halved, tmp_path / "halved").counters.updates == 6 * ROUND
    small = replace(config, agent=replace(config.agent, batch_size=400))
    with pytest.raises(EmptyViewError, match="fewer than a batch of 400"):
        run(small, tmp_path / "small")


def test_what_cannot_run_is_refused_before_it_starts(tmp_path):
    with pytest.raises(UnsupportedSpaceError, match="Discrete"):
        build(tiny_config(environment="CartPole-v1"), tmp_path)
    with pytest.raises(ConfigError, match="the run would end before it learns"):
        build(tiny_config(steps=WARMUP), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    config = tiny_config(rounds=8)
    run(config, tmp_path)
    wider = longer(tiny_config(agent=VRacerConfig(hidden=[9], batch_size=16)), 10)
    with pytest.raises(CheckpointError, match=r"network\.head\.weight \(3, 8\) against \(3, 9\)"):
        run(wider, tmp_path, resume=True)


def test_the_initial_weights_depend_on_the_seed_alone(tmp_path):
    torch.manual_seed(0)
    first, _ = build(tiny_config(seed=5), tmp_path)
    torch.manual_seed(1)
    second, _ = build(tiny_config(seed=5), tmp_path)
    third, _ = build(tiny_config(seed=6), tmp_path)
    assert differences(first.state_dict(), second.state_dict()) == []
    assert differences(first.state_dict(), third.state_dict()) != []
