"""DQN's runs: what is copied, kept, refused, and gone on with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import storage
import training
from storage.errors import CheckpointError, ConfigError, SchemaMismatchError, UnsupportedSpaceError
from storage.replay import PrioritySettings, ReplayView, SequenceSettings
from tests.training.tiny import (
    ROUND,
    WARMUP,
    checkpoint_content,
    differences,
    rows,
    run,
    tiny_config,
)
from training.agents.dqn.agent import Dqn
from training.agents.dqn.config import DqnConfig
from training.assembly import build
from training.refer import PRESETS

CHOICES, PICTURES = "tests.training.zoo.Choices", "tests.training.zoo.Pictures"
CURRENT = PrioritySettings(initial="current_td")


def settings(**changes: Any) -> DqnConfig:
    tiny = {
        "hidden": [8, 8],
        "batch_size": 16,
        "scaling_interval": 20,
        "learning_rate": 1e-3,
        "target_interval": 7,
        "exploration_steps": 100,
        "engine": "eager",
    }
    return DqnConfig(**(tiny | changes))


def config(agent: DqnConfig | None = None, environment: str = CHOICES, **more: Any):
    return tiny_config(environment=environment, agent=agent or settings(), **more)


RUNS = {
    "uniform": {"scheme": "uniform"},
    "per": {"scheme": "per"},
    "pser": {"scheme": "pser", "sequences": SequenceSettings(mode="add", window=3)},
    "per-current": {"scheme": "per", "priorities": CURRENT},
    "lanes": {"scheme": "uniform", "lanes": 2},
    "softmax": {
        "agent": settings(policy="softmax", refer=PRESETS["ReF-ER"], dueling=True, double=True)
    },
    "adam": {"agent": settings(optimizer="adam", refer=PRESETS["ReF-ER-1"], scale_rewards=True)},
}


@pytest.mark.parametrize("name", RUNS)
def test_stopped_and_resumed_equals_straight(tmp_path, name):
    case = config(rounds=13, **RUNS[name])
    straight = run(case, tmp_path / "straight")
    assert straight.counters.updates == 13 * ROUND - WARMUP
    run(case, tmp_path / "resumed", max_steps=9)
    run(case, tmp_path / "resumed", resume=True)
    contents = [checkpoint_content(tmp_path / folder) for folder in ("straight", "resumed")]
    assert differences(*contents) == []
    assert rows(tmp_path / "straight") == rows(tmp_path / "resumed")
    hashes = {storage.content_hash(tmp_path / f / "store") for f in ("straight", "resumed")}
    assert len(hashes) == 1


def test_frames_are_learnt_from_and_gone_on_with(tmp_path):
    case = config(settings(hidden=[8]), PICTURES, rounds=8)
    straight = run(case, tmp_path / "straight")
    assert straight.observation_scaling.size == 0
    assert straight.network.convolutions is not None
    run(case, tmp_path / "resumed", max_steps=7)
    resumed = run(case, tmp_path / "resumed", resume=True)
    assert differences(straight.state_dict(), resumed.state_dict()) == []
    assert float(rows(tmp_path / "straight")[-1]["gradient_norm"]) > 0


@pytest.mark.soak
@pytest.mark.parametrize("environment", [CHOICES, PICTURES])
def test_the_compiled_engine_learns_the_same(tmp_path, environment):
    changes = {"hidden": [8], "double": True, "dueling": True}
    made = {}
    for engine in ("eager", "compiled"):
        case = config(settings(engine=engine, **changes), environment, steps=WARMUP + 5)
        made[engine] = run(case, tmp_path / engine)
    for left, right in zip(
        made["eager"].network.parameters(), made["compiled"].network.parameters(), strict=True
    ):
        assert torch.allclose(left, right, atol=1e-5)


def test_targets_are_copied_at_their_interval(tmp_path, monkeypatch):
    seen = []
    original = Dqn.updated

    def watched(self, done):
        before = [tensor.clone() for tensor in self.target.parameters()]
        original(self, done)
        pairs = zip(before, self.target.parameters(), strict=True)
        moved = any(not torch.equal(a, b) for a, b in pairs)
        pairs = zip(self.network.parameters(), self.target.parameters(), strict=True)
        equal = all(torch.equal(a, b) for a, b in pairs)
        seen.append((done, moved, equal))

    monkeypatch.setattr(Dqn, "updated", watched)
    run(config(rounds=9), tmp_path)
    assert [done for done, _, _ in seen] == list(range(1, 9 * ROUND - WARMUP + 1))
    assert all(moved == equal == (done % 7 == 0) for done, moved, equal in seen)


def test_the_store_holds_what_the_policy_was(tmp_path):
    agent = settings(exploration_final=0.1)
    module = run(config(agent, rounds=14), tmp_path)
    store = storage.open(tmp_path / "store")
    behaviour, kind = (store.columns[name][:] for name in ("behaviour", "behaviour_kind"))
    steps = kind == 2
    assert store.schema.behaviour_family == "categorical"
    assert behaviour[steps].sum(1) == pytest.approx(np.ones(steps.sum()), abs=1e-6)
    assert behaviour[steps][:WARMUP] == pytest.approx(np.full((WARMUP, 3), 1 / 3))
    for step, found in enumerate(behaviour[steps][WARMUP:]):
        epsilon = module.settings.exploration(agent, WARMUP + step, WARMUP)
        assert np.sort(found) == pytest.approx(
            [epsilon / 3, epsilon / 3, 1 - 2 * epsilon / 3], abs=1e-6
        )
    assert set(store.columns["action"][:][steps]) == {2, 3, 4}


def test_rho_of_the_window_at_the_warmups_end(tmp_path, monkeypatch):
    """Under the network that acts next: for the softmax the same one, so 1 everywhere."""
    seen = {}
    original = Dqn.start_learning

    def watched(self, view):
        original(self, view)
        batch = view.sample(16)
        seen["ratio"] = view.read("importance_ratio", batch.segment, batch.row)
        seen["value"] = view.read("value", batch.segment, batch.row)

    monkeypatch.setattr(Dqn, "start_learning", watched)
    for name, changes in {
        "greedy": {"exploration_initial": 0.5},
        "softmax": {"policy": "softmax", "scale_observations": False},
    }.items():
        run(config(settings(**changes), rounds=7), tmp_path / name)
        assert not seen["value"].any()
        expected = {"greedy": {0.5, 2.0}, "softmax": {1.0}}[name]
        assert {round(float(ratio), 5) for ratio in seen["ratio"]} == expected


def test_new_episodes_enter_by_their_td_errors(tmp_path, monkeypatch):
    given = []
    original = ReplayView.admit

    def watched(self, record, values, *, priority_error=None):
        given.append((record, values, priority_error))
        original(self, record, values, priority_error=priority_error)

    monkeypatch.setattr(ReplayView, "admit", watched)
    case = config(rounds=10, scheme="per", priorities=CURRENT)
    module, data = build(case, tmp_path)
    checked = []

    def errors(episode):
        found = Dqn.initial_errors(module, episode)
        rows_ = module.observation_scaling.scale(episode.observation)
        with torch.no_grad():
            values = module.network(torch.from_numpy(rows_)).numpy()
            following = module.target(torch.from_numpy(rows_)).numpy().max(1)
        chosen = values[np.arange(len(episode)), episode.action - 2]
        goals = episode.reward + 0.99 * (1 - episode.terminated) * following[1:]
        assert found == pytest.approx(np.abs(goals - chosen), abs=1e-4)
        checked.append(len(episode))
        return found

    module.initial_errors = errors
    training.assembly.trainer(case, tmp_path).fit(module, data)
    assert [record.length for record, _, _ in given] == checked
    assert len(checked) >= 8
    assert all(not values.any() and len(found) == r.length for r, values, found in given)
    given.clear()
    run(config(rounds=8, scheme="per"), tmp_path / "largest")
    assert all(found is None for _, _, found in given)


def test_a_loaded_agent_acts_as_it_did_then(tmp_path):
    module = run(config(rounds=10), tmp_path)
    loaded = training.load(tmp_path)
    epsilon = module.config.agent.exploration(10 * ROUND, WARMUP)
    shown = np.array([0.3, -0.2, 0.1])
    step = loaded.policy.act(0, 0, shown)
    assert step.behaviour.min() == pytest.approx(epsilon / 3)
    best = loaded.act(shown)
    assert best == module.policy.act(0, 5, shown, greedy=True).action == 2 + step.behaviour.argmax()
    drawn = [loaded.act(shown, greedy=False) for _ in range(300)]
    assert drawn.count(best) >= 296  # evaluation_epsilon is 0.001
    assert loaded.policy.act(0, 0, shown).behaviour.min() == pytest.approx(epsilon / 3)


def test_learning_from_a_fixed_store(tmp_path):
    run(config(rounds=16), tmp_path / "source")
    store = str(tmp_path / "source" / "store")
    case = config(rounds=4, window=1000)
    case = replace(case, replay=replace(case.replay, store=store))
    module = run(case, tmp_path / "learner")
    assert module.counters.updates == 4 * ROUND
    assert float(rows(tmp_path / "learner")[-1]["exploration"]) == 0.01


def test_behaviours_of_another_kind_are_refused(tmp_path):
    spec = build(config(), tmp_path / "x")[0].spec
    store = storage.create(tmp_path / "s", spec)
    with store.writer() as writer:
        writer.begin(0, np.zeros(3), seed=0)
        for t in range(40):
            writer.step(
                0,
                action=np.int64(2),
                reward=1.0,
                observation=np.ones(3),
                terminated=t == 39,
                truncated=False,
                behaviour_kind=0,
            )
    store.close()
    case = config(rounds=4, window=1000)
    case = replace(case, replay=replace(case.replay, store=str(tmp_path / "s")))
    with pytest.raises(SchemaMismatchError, match="needs the probability of every action"):
        run(case, tmp_path / "learner")


def test_what_cannot_run_is_refused_before_it_starts(tmp_path):
    with pytest.raises(UnsupportedSpaceError, match="DQN acts in one Discrete space"):
        build(config(environment="tests.training.zoo.Drift"), tmp_path)
    with pytest.raises(ConfigError, match="convolutions need one uint8"):
        build(config(settings(network="cnn")), tmp_path)
    with pytest.raises(ConfigError, match="fused is not possible for this agent"):
        run(config(settings(engine="fused")), tmp_path / "fused")
    assert not (tmp_path / "store").exists()


def test_another_optimizers_checkpoint_is_refused(tmp_path):
    run(config(rounds=8), tmp_path)
    with pytest.raises(CheckpointError, match="optimizer"):
        run(config(settings(optimizer="adam"), rounds=9), tmp_path, resume=True)


def test_the_initial_weights_depend_on_the_seed_alone(tmp_path):
    torch.manual_seed(0)
    first = build(config(seed=5), tmp_path)[0].state_dict()
    torch.manual_seed(1)
    assert differences(first, build(config(seed=5), tmp_path)[0].state_dict()) == []
    assert differences(first, build(config(seed=6), tmp_path)[0].state_dict()) != []
