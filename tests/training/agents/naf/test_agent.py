"""NAF's runs: they learn, resume bit-equal under every scheme, and keep the target."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

import storage
from storage.errors import ConfigError, SchemaMismatchError, UnsupportedSpaceError
from storage.layout import BehaviourKind
from storage.replay import ReplayView
from tests.training.tiny import (
    ROUND,
    WARMUP,
    checkpoint_content,
    differences,
    rows,
    run,
    tiny_config,
)
from training.agents.naf.agent import Naf
from training.agents.naf.config import NafConfig
from training.agents.registry import agent_class, config_class
from training.assembly import build, trainer
from training.checkpoints.checkpoint_file import read_checkpoint
from training.config import PrioritySettings, RunConfig
from training.refer import PRESETS, ReferSettings

SCHEMES: dict[str, dict[str, Any]] = {
    "uniform": {},
    "per": {"scheme": "per"},
    "pser": {"scheme": "pser"},
}


def naf(rules: str = "ReF-ER", **settings: Any) -> NafConfig:
    """A learning rate at which steps become far within some hundred updates."""
    small: dict[str, Any] = {
        "hidden": [8, 8],
        "batch_size": 16,
        "scaling_interval": 20,
        "learning_rate": 1e-3,
        "refer": dataclasses.replace(PRESETS[rules], c=1.0),
    }
    return NafConfig(**small | settings)


def config(agent: NafConfig, *, rounds: int = 13, scheme: str = "uniform") -> RunConfig:
    return tiny_config(rounds=rounds, agent=agent, checkpoint_rounds=100, **SCHEMES[scheme])


def state(folder) -> dict[str, Any]:
    return read_checkpoint(folder / "checkpoints" / "last.ckpt")


def stored(path) -> list[np.ndarray]:
    """Kinds and parameters of the behaviour at every step, without the closing rows."""
    with storage.open(path) as store:
        episodes = list(store.iterate_episodes())
        names = ("behaviour_kind", "behaviour")
        return [np.concatenate([each.columns[name][:-1] for each in episodes]) for name in names]


def test_the_kind_is_known():
    assert config_class("naf") is NafConfig
    assert agent_class("naf") is Naf


@pytest.mark.parametrize("rules", PRESETS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_run_is_its_stop_and_its_rest(tmp_path, scheme, rules):
    whole = config(naf(rules), scheme=scheme)
    module = run(whole, tmp_path / "straight")
    assert module.counters.updates == 13 * ROUND - WARMUP
    assert module.engine_name == "fused"
    run(whole, tmp_path / "resumed", max_steps=10)
    run(whole, tmp_path / "resumed", resume=True)
    straight, resumed = (checkpoint_content(tmp_path / each) for each in ("straight", "resumed"))
    assert differences(straight, resumed) == []
    assert rows(tmp_path / "straight") == rows(tmp_path / "resumed")
    last = rows(tmp_path / "straight")[-1]
    for name in ("loss", "gradient_norm", "divergence", "value", "beta", "far_fraction"):
        assert np.isfinite(float(last[name])), name
    assert all(torch.isfinite(each).all() for each in module.state_dict().values())


@pytest.mark.parametrize("settings", [{"engine": "eager"}, {"activation": "tanh"}])
def test_other_engines_resume_bit_equal(tmp_path, settings):
    whole = config(naf(**settings), rounds=10)
    module = run(whole, tmp_path / "straight")
    assert module.engine_name == "eager"
    run(whole, tmp_path / "resumed", max_steps=8)
    run(whole, tmp_path / "resumed", resume=True)
    straight, resumed = (checkpoint_content(tmp_path / each) for each in ("straight", "resumed"))
    assert differences(straight, resumed) == []


@pytest.mark.parametrize("engine", ["fused", "eager"])
def test_checkpoints_hold_the_target_which_lags_behind(tmp_path, engine):
    module = run(config(naf(engine=engine)), tmp_path)
    kept = state(tmp_path)["state_dict"]
    first, _ = build(config(naf()), tmp_path / "new")
    for name, tensor in module.network.named_parameters():
        target, start = kept[f"target.{name}"], first.network.get_parameter(name)
        assert torch.equal(kept[f"network.{name}"], tensor)
        assert torch.equal(target, module.target.get_parameter(name))
        behind, whole = (target - start).norm(), (tensor - start).norm()
        assert 0 < behind < 0.9 * whole, name
    optimizer = state(tmp_path)["optimizer_states"][0]
    assert len(optimizer["state"]) == len(list(module.network.parameters()))


def test_rules_feed_back_ratios_and_divergences_of_a_fixed_deviation(tmp_path):
    run(config(naf(learning_rate=1e-2), rounds=20), tmp_path)
    last = rows(tmp_path)[-1]
    assert float(last["far_fraction"]) > 0
    assert 0 < float(last["beta"]) < 1
    assert float(last["divergence"]) > 1e-4
    kinds, behaviour = stored(tmp_path / "store")
    assert set(kinds) == {int(BehaviourKind.GAUSSIAN)}
    assert behaviour[:, behaviour.shape[1] // 2 :] == pytest.approx(0.2, rel=1e-5)


def test_correlated_noise_is_stored_as_nominal_and_resumes(tmp_path):
    agent = naf("ER", noise="ornstein_uhlenbeck")
    whole = config(agent, scheme="per")
    run(whole, tmp_path / "straight")
    run(whole, tmp_path / "resumed", max_steps=10)
    run(whole, tmp_path / "resumed", resume=True)
    straight, resumed = (checkpoint_content(tmp_path / each) for each in ("straight", "resumed"))
    assert differences(straight, resumed) == []
    assert set(stored(tmp_path / "straight" / "store")[0]) == {int(BehaviourKind.NOMINAL_GAUSSIAN)}


def test_new_episodes_enter_by_their_errors(tmp_path, monkeypatch):
    """Where asked: by Q of acting's network against the target's value of the next state."""
    given, checked = [], []
    original = ReplayView.admit

    def watched(self, record, values, *, priority_error=None):
        given.append((record.length, priority_error))
        original(self, record, values, priority_error=priority_error)

    monkeypatch.setattr(ReplayView, "admit", watched)
    whole = config(naf("ER", discount=0.9), rounds=14)
    priorities = PrioritySettings(initial="current_td")
    replay = dataclasses.replace(whole.replay, scheme="per", priorities=priorities)
    whole = dataclasses.replace(whole, replay=replay)
    module, data = build(whole, tmp_path)

    def errors(episode):
        found = Naf.initial_errors(module, episode)
        rows_ = torch.from_numpy(module.observation_scaling.scale(episode.observation))
        with torch.no_grad():
            output, following = module.network(rows_), module.target(rows_).value.numpy()[1:]
        actions = episode.columns["raw_action"][:-1]
        turned = np.einsum(
            "bij,bi->bj", output.lower.numpy()[:-1], actions - output.mean[:-1].numpy()
        )
        goals = episode.reward / module.reward_scaling.value
        goals = goals + 0.9 * (1 - episode.terminated) * following
        values = output.value.numpy()[:-1] - 0.5 * (turned**2).sum(1)
        assert found == pytest.approx(np.abs(goals - values), abs=1e-5)
        checked.append((len(episode), found))
        return found

    module.initial_errors = errors
    trainer(whole, tmp_path).fit(module, data)
    assert len(checked) >= 8
    for (length, entered), (own, found) in zip(given, checked, strict=True):
        assert length == own == len(found)
        assert np.array_equal(entered, found)


def test_a_stores_steps_without_a_density_are_refused(tmp_path):
    agent = naf("ER", noise="ornstein_uhlenbeck")
    run(config(agent), tmp_path / "source")
    whole = config(naf("ER"), rounds=2)
    replay = dataclasses.replace(whole.replay, store=str(tmp_path / "source" / "store"))
    with pytest.raises(SchemaMismatchError, match="correlated along its episode"):
        run(dataclasses.replace(whole, replay=replay), tmp_path / "plain")
    with_noise = dataclasses.replace(whole, replay=replay, agent=agent)
    assert run(with_noise, tmp_path / "own").counters.updates == 2 * ROUND


def test_actions_that_are_not_continuous_are_refused(tmp_path):
    with pytest.raises(UnsupportedSpaceError, match="Discrete"):
        build(tiny_config(environment="CartPole-v1", agent=naf()), tmp_path)


def test_the_closed_form_is_of_softsign_layers_alone(tmp_path):
    with pytest.raises(ConfigError, match="fused is not possible for this agent"):
        run(config(naf(activation="tanh", engine="fused")), tmp_path)


def test_a_gradients_length_is_limited(tmp_path):
    free = run(config(naf("ER"), rounds=8), tmp_path / "free")
    cut = run(config(naf("ER", gradient_clip=1e-6), rounds=8), tmp_path / "cut")
    assert differences(free.state_dict(), cut.state_dict()) != []


def test_a_rule_is_refused_with_correlated_noise():
    for rules in ("ReF-ER", "ReF-ER-1", "ReF-ER-2"):
        with pytest.raises(ConfigError, match=r"agent\.noise is ornstein_uhlenbeck"):
            NafConfig(noise="ornstein_uhlenbeck", refer=PRESETS[rules])
    assert NafConfig(noise="ornstein_uhlenbeck", refer=ReferSettings(rule_1=False, rule_2=False))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_rate": 0.0}, r"agent\.target_rate is 0\.0"),
        ({"target_rate": 1.5}, r"agent\.target_rate is 1\.5; it lies in \(0, 1\]"),
        ({"stdev": 0.0}, r"agent\.stdev is 0\.0"),
        ({"output_bound": -1.0}, r"agent\.output_bound is -1\.0"),
        ({"discount": 1.5}, r"agent\.discount is 1\.5"),
        ({"stdev": float("nan")}, r"agent\.stdev is nan"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        NafConfig(**settings)


def test_defaults_are_those_of_the_refer_paper():
    settings = NafConfig()
    assert settings.hidden == [128, 128]
    assert (settings.learning_rate, settings.batch_size, settings.discount) == (1e-4, 256, 0.995)
    assert (settings.target_rate, settings.stdev, settings.noise) == (0.01, 0.2, "gaussian")
    assert (settings.diagonal, settings.activation, settings.residual) == (
        "smooth",
        "softsign",
        True,
    )
