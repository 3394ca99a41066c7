"""DDPG's runs: schemes, rules and orders resume bit-equal, and what cannot run is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

import storage
from storage.errors import CheckpointError, ConfigError, SchemaMismatchError, UnsupportedSpaceError
from storage.replay import ReplayView
from tests.training.test_schemes import SCHEMES, WARMUP_ROUNDS, state
from tests.training.tiny import ROUND, differences, longer, rows, run, tiny_config
from training.agents.ddpg.agent import Ddpg
from training.agents.ddpg.config import DdpgConfig
from training.assembly import build, trainer
from training.checkpoints.plain_state import as_arrays
from training.config import PrioritySettings, RunConfig
from training.engines.compiler import compiler_problem
from training.refer import PRESETS

OVERLAY = ("priority", "importance_ratio", "far", "divergence")


def settings(rules: str = "ReF-ER", **changed: Any) -> DdpgConfig:
    """Rates at which steps become far within some hundred updates."""
    own: dict[str, Any] = {
        "hidden": [8, 8],
        "batch_size": 16,
        "scaling_interval": 20,
        "learning_rate": 1e-2,
        "actor_learning_rate": 1e-2,
        "engine": "eager",
        "refer": dataclasses.replace(PRESETS[rules], c=0.5, beta_initial=0.5),
    }
    return DdpgConfig(**own | changed)


def config(
    scheme: str = "uniform", agent: DdpgConfig | None = None, *, rounds: int = 20, **other: Any
) -> RunConfig:
    return tiny_config(
        rounds=rounds,
        checkpoint_rounds=100,
        window=96,
        agent=agent or settings(),
        **SCHEMES[scheme] | other,
    )


def assert_resumes(whole: RunConfig, folder: Any) -> dict[str, Any]:
    """A straight run is a stop and a resume; the straight run's state."""
    run(whole, folder / "straight")
    run(whole, folder / "resumed", max_steps=WARMUP_ROUNDS + 4)
    run(whole, folder / "resumed", resume=True)
    straight, resumed = state(folder / "straight"), state(folder / "resumed")
    assert differences(straight, resumed) == []
    assert rows(folder / "straight") == rows(folder / "resumed")
    return straight


@pytest.mark.parametrize(
    ("scheme", "rules"),
    [
        *(("uniform", rules) for rules in PRESETS),
        ("per", "ER"),
        ("pser max", "ReF-ER-1"),
        ("pser add", "ReF-ER"),
    ],
)
def test_every_scheme_and_rule_resumes_bit_equal(tmp_path, scheme, rules):
    order = "sequential" if rules in ("ER", "ReF-ER") else "simultaneous"
    whole = config(scheme, settings(rules, order=order), rounds=WARMUP_ROUNDS + 8)
    straight = assert_resumes(whole, tmp_path)
    columns = as_arrays(straight["view"])["overlay"]
    assert set(OVERLAY) <= set(columns)
    for name in OVERLAY:
        assert np.isfinite(columns[name]).all(), name
    assert 0 < columns["far"].mean() < 1
    assert (len(np.unique(columns["priority"])) > 20) == (scheme != "uniform")
    assert straight["learning"]["engine"] == "eager"
    names = set(straight["parameters"])
    assert {name.split(".")[1] for name in names if name.startswith("networks.")} == {
        "actor",
        "critic",
        "target_actor",
        "target_critic",
    }


@pytest.mark.parametrize("lane_kind", ["serial", "sync"])
def test_correlated_noise_resumes_bit_equal_in_several_lanes(tmp_path, lane_kind):
    agent = settings("ER", noise="ornstein_uhlenbeck", bounded_mean=True)
    whole = config("per", agent, rounds=16, lanes=2, lane_kind=lane_kind)
    columns = as_arrays(assert_resumes(whole, tmp_path)["view"])["overlay"]
    assert np.isfinite(columns["importance_ratio"]).all()
    with storage.open(tmp_path / "straight" / "store") as store:
        kinds = np.concatenate(
            [each.columns["behaviour_kind"] for each in store.iterate_episodes()]
        )
        deviations = np.concatenate([each.behaviour[:, 2:] for each in store.iterate_episodes()])
    assert set(kinds) == {0, 4}
    assert deviations == pytest.approx(np.full_like(deviations, 0.2))


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_fused_updates_resume_bit_equal(tmp_path, order):
    whole = config("pser max", settings(engine="auto", order=order), rounds=WARMUP_ROUNDS + 6)
    assert assert_resumes(whole, tmp_path)["learning"]["engine"] == "fused"


@pytest.mark.soak
@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_compiled_updates_resume_bit_equal(tmp_path, order):
    if compiler_problem() is not None:
        pytest.skip(str(compiler_problem()))
    whole = config("pser max", settings(engine="compiled", order=order), rounds=WARMUP_ROUNDS + 6)
    assert assert_resumes(whole, tmp_path)["learning"]["engine"] == "compiled"


def test_what_a_row_of_metrics_says(tmp_path):
    module = run(config(rounds=14), tmp_path)
    last = rows(tmp_path)[-1]
    assert float(last["learning_rate"]) == pytest.approx(1e-2, rel=1e-3)
    assert float(last["actor_rate"]) == pytest.approx(1e-2, rel=1e-3)
    for name in ("loss", "gradient_norm", "value", "divergence", "importance_ratio_q50"):
        assert np.isfinite(float(last[name])), name
    assert module.engine_name == "eager"


def test_learning_from_a_fixed_store(tmp_path):
    run(config("uniform", rounds=12), tmp_path / "source")
    store = tmp_path / "source" / "store"
    whole = config("per", rounds=6)
    whole = dataclasses.replace(whole, replay=dataclasses.replace(whole.replay, store=str(store)))
    straight = run(whole, tmp_path / "straight")
    assert straight.counters.updates == 6 * ROUND
    run(whole, tmp_path / "resumed", max_steps=3)
    resumed = run(whole, tmp_path / "resumed", resume=True)
    assert differences(straight.state_dict(), resumed.state_dict()) == []


def test_a_store_of_correlated_noise_serves_agents_without_ratios_alone(tmp_path):
    noisy = settings("ER", noise="ornstein_uhlenbeck")
    run(config("uniform", noisy, rounds=12), tmp_path / "source")
    whole = config("uniform", noisy, rounds=4)
    store = str(tmp_path / "source" / "store")
    whole = dataclasses.replace(whole, replay=dataclasses.replace(whole.replay, store=store))
    assert run(whole, tmp_path / "noisy").counters.updates == 4 * ROUND
    for number, rules in enumerate(("ReF-ER", "ER")):
        other = dataclasses.replace(whole, agent=settings(rules))
        with pytest.raises(SchemaMismatchError, match=r"correlated along its episode"):
            run(other, tmp_path / str(number))


def test_what_cannot_run_is_refused_before_it_starts(tmp_path):
    with pytest.raises(UnsupportedSpaceError, match="Discrete"):
        build(config(environment="CartPole-v1"), tmp_path)
    with pytest.raises(ConfigError, match=r"engine: fused is not possible for this agent"):
        run(config(agent=settings(engine="fused", critic_action_layer=1)), tmp_path / "fused")


def test_a_checkpoint_of_other_networks_is_refused(tmp_path):
    run(config(rounds=9), tmp_path)
    joined = settings(critic_action_layer=1)
    with pytest.raises(CheckpointError, match=r"networks\.critic"):
        run(longer(config(agent=joined), 12), tmp_path, resume=True)


def test_the_initial_weights_depend_on_the_seed_alone(tmp_path):
    torch.manual_seed(0)
    first, _ = build(config(seed=5), tmp_path)
    torch.manual_seed(1)
    second, _ = build(config(seed=5), tmp_path)
    third, _ = build(config(seed=6), tmp_path)
    assert differences(first.state_dict(), second.state_dict()) == []
    assert differences(first.state_dict(), third.state_dict()) != []
    assert isinstance(first, Ddpg)


def test_new_steps_enter_with_their_own_errors_where_asked(tmp_path, monkeypatch):
    entered = []
    original = ReplayView.admit

    def watched(self, record, values, *, priority_error=None):
        entered.append(priority_error)
        original(self, record, values, priority_error=priority_error)

    monkeypatch.setattr(ReplayView, "admit", watched)
    priorities = PrioritySettings(initial="current_td")
    whole = config(agent=settings("ER", discount=0.9), rounds=12)
    replay = dataclasses.replace(whole.replay, scheme="per", priorities=priorities)
    module, data = build(dataclasses.replace(whole, replay=replay), tmp_path)
    expected = []

    def errors(episode):
        nets, rows_ = module.networks, module.observation_scaling.scale(episode.observation)
        states = torch.from_numpy(rows_)
        actions = torch.from_numpy(episode.columns["raw_action"][:-1].copy())
        with torch.no_grad():
            following = nets.target_critic(states[1:], nets.target_actor(states[1:])).numpy()
            values = nets.critic(states[:-1], actions).numpy()
        goals = episode.reward / module.reward_scaling.value
        goals = goals + 0.9 * (1 - episode.terminated) * following
        expected.append(np.abs(goals - values))
        return Ddpg.initial_errors(module, episode)

    module.initial_errors = errors
    trainer(module.config, tmp_path).fit(module, data)
    assert len(entered) == len(expected) > 5
    for found, wanted in zip(entered, expected, strict=True):
        assert found == pytest.approx(wanted, abs=1e-5)
