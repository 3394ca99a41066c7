"""The whole loop on a tiny task: counters, plain Lightning, determinism, side effects."""

from __future__ import annotations

import lightning
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import storage
import training
from storage.errors import ConfigError, StoreExistsError
from storage.replay import ReplayView
from tests.training.tiny import ROUND, WARMUP, differences, rows, run, tiny_config
from training.agents.vracer.config import VRacerConfig
from training.assembly import build, trainer


def test_counters_metrics_and_a_partial_last_round(tmp_path):
    config = tiny_config(steps=20 * ROUND + 5)
    module = run(config, tmp_path)
    counters = module.counters
    assert counters.environment_steps == 20 * ROUND + 5
    assert counters.origin_steps == WARMUP
    assert counters.updates == 20 * ROUND + 5 - WARMUP
    assert storage.open(tmp_path / "store").n_steps == 20 * ROUND + 5
    logged = rows(tmp_path)
    assert [int(row["environment_steps"]) for row in logged] == [
        10 * ROUND,
        20 * ROUND,
        20 * ROUND + 5,
    ]
    assert logged[-1]["updates"] == str(counters.updates)
    assert float(logged[-1]["gradient_norm"]) > 0
    assert 0 < float(logged[-1]["beta"]) < 1
    assert module.network.head.weight.grad is None


def test_plain_lightning_is_enough(tmp_path, capsys, recwarn):
    config = tiny_config(rounds=12)
    module, data = build(config, tmp_path / "run")
    lightning.Trainer(default_root_dir=tmp_path, enable_progress_bar=False, logger=False).fit(
        module, data
    )
    assert module.environment_steps == 12 * ROUND
    assert module.trainer.global_step == 12
    assert module.counters.updates == 12 * ROUND - WARMUP


def test_our_trainer_says_nothing_unasked(tmp_path, capfd, recwarn):
    run(tiny_config(rounds=12, evaluate_every=64), tmp_path)
    shown = capfd.readouterr()
    assert (shown.out, shown.err) == ("", "")
    assert [str(each.message) for each in recwarn] == []


def test_checkpoint_callbacks_fire_by_rounds(tmp_path):
    """lightning#20200: every_n_train_steps never fired in loops of this kind."""
    config = tiny_config(rounds=16)
    every = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=4, save_top_k=-1)
    module, data = build(config, tmp_path / "run")
    lightning.Trainer(max_steps=16, logger=False, callbacks=[every], enable_progress_bar=False).fit(
        module, data
    )
    names = sorted(path.name for path in tmp_path.glob("step=*.ckpt"))
    assert names == ["step=12.ckpt", "step=16.ckpt", "step=4.ckpt", "step=8.ckpt"]
    for name in names:
        assert torch.load(tmp_path / name, weights_only=True)["sharpwave"]["counters"]


@pytest.mark.parametrize(("lanes", "kind"), [(1, "serial"), (4, "serial"), (2, "sync")])
def test_the_same_seed_is_the_same_run(tmp_path, lanes, kind):
    config = tiny_config(rounds=14, lanes=lanes, lane_kind=kind)
    first, second = run(config, tmp_path / "a"), run(config, tmp_path / "b")
    assert differences(first.state_dict(), second.state_dict()) == []
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    hashes = [storage.content_hash(tmp_path / name / "store") for name in "ab"]
    assert hashes[0] == hashes[1]
    other = run(tiny_config(rounds=14, lanes=lanes, lane_kind=kind, seed=2), tmp_path / "c")
    assert differences(first.state_dict(), other.state_dict()) != []


def test_processes_change_nothing(tmp_path):
    first = run(tiny_config(rounds=9, lanes=2, lane_kind="sync"), tmp_path / "a")
    second = run(tiny_config(rounds=9, lanes=2, lane_kind="async"), tmp_path / "b")
    assert differences(first.state_dict(), second.state_dict()) == []
    hashes = [storage.content_hash(tmp_path / name / "store") for name in "ab"]
    assert hashes[0] == hashes[1]


def test_draws_follow_the_runs_seed(tmp_path, monkeypatch):
    seeds = []
    original = ReplayView.__init__

    def watched(self, store, **options):
        seeds.append(options["seed"])
        original(self, store, **options)

    monkeypatch.setattr(ReplayView, "__init__", watched)
    run(tiny_config(rounds=8, seed=23), tmp_path)
    assert seeds == [23]


def test_evaluation_disturbs_nothing(tmp_path):
    with_it = run(tiny_config(rounds=14, evaluate_every=32), tmp_path / "a")
    without = run(tiny_config(rounds=14), tmp_path / "b")
    assert differences(with_it.state_dict(), without.state_dict()) == []
    evaluated = [row for row in rows(tmp_path / "a") if row["evaluation_return"]]
    assert [int(row["environment_steps"]) // ROUND for row in evaluated] == [8, 10, 12, 14]
    best = torch.load(tmp_path / "a" / "checkpoints" / "best.ckpt", weights_only=True)
    returns = [float(row["evaluation_return"]) for row in evaluated]
    assert best["global_step"] == [8, 10, 12, 14][int(np.argmax(returns))]


def test_updates_follow_the_ratio_and_owe_nothing_for_the_warmup(tmp_path):
    half = run(tiny_config(rounds=16, ratio=0.5), tmp_path / "half")
    assert half.counters.updates == (16 * ROUND - WARMUP) // 2
    thrice = run(tiny_config(rounds=10, ratio=3.0), tmp_path / "thrice")
    assert thrice.counters.updates == 3 * (10 * ROUND - WARMUP)


def test_a_warmup_without_enough_steps_in_the_window_goes_on(tmp_path):
    """Four lanes have no episode finished at 100 steps when every episode is longer than 25."""
    config = tiny_config(rounds=20, lanes=4, environment="tests.training.zoo.LongDrift")
    module = run(config, tmp_path)
    counters = module.counters
    assert counters.origin_steps > WARMUP
    assert counters.updates == counters.environment_steps - counters.origin_steps


def test_a_loaded_agent_acts_as_the_trained_one(tmp_path):
    module = run(tiny_config(rounds=16), tmp_path)
    loaded = training.load(tmp_path)
    observation = np.array([0.3, -2.0, 1.1])
    assert np.array_equal(loaded.act(observation), module.act(observation))
    assert loaded.environment_steps == 16 * ROUND
    draws = [loaded.act(observation, greedy=False) for _ in range(2)]
    assert not np.array_equal(draws[0], draws[1])
    assert loaded.observation_scaling.mean.any()


def test_a_new_run_never_writes_into_an_old_one(tmp_path):
    run(tiny_config(rounds=8), tmp_path)
    with pytest.raises(StoreExistsError, match=r"another run_dir, or .* ckpt_path='.*last\.ckpt'"):
        run(tiny_config(rounds=8), tmp_path)


@pytest.mark.parametrize("variant", ["ER", "ReF-ER-1", "ReF-ER-2", "ReF-ER"])
def test_every_rule_set_runs(tmp_path, variant):
    from training.refer import preset

    agent = VRacerConfig(
        hidden=[8], batch_size=16, refer=preset(variant), state_dependent_stdev=variant == "ER"
    )
    module = run(tiny_config(rounds=12, agent=agent), tmp_path)
    assert all(torch.isfinite(value).all() for value in module.state_dict().values())
    assert (module.beta == 1.0) == (variant in ("ER", "ReF-ER-1"))


def test_own_loggers_get_rows_by_class_path(tmp_path):
    from dataclasses import replace

    config = tiny_config(rounds=12)
    described = {
        "class_path": "lightning.pytorch.loggers.CSVLogger",
        "init_args": {"save_dir": str(tmp_path), "name": "own", "flush_logs_every_n_steps": 1},
    }
    config = replace(config, logging=replace(config.logging, loggers=[described]))
    run(config, tmp_path / "run")
    assert "gradient_norm" in (tmp_path / "own" / "version_0" / "metrics.csv").read_text()


def test_a_trainer_of_one_s_own_is_looked_at(tmp_path):
    config = tiny_config(rounds=8)
    own = lightning.Trainer(
        accelerator="cpu", precision="bf16-mixed", max_epochs=-1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, default_root_dir=tmp_path,
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"precision is bf16-mixed.*accelerator='cpu'"):
        own.fit(*build(config, tmp_path))
    assert not (tmp_path / "store").exists()


def test_trainer_options_win(tmp_path):
    made = trainer(tiny_config(), tmp_path, max_steps=3)
    assert made.max_steps == 3
