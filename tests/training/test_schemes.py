"""Every scheme with every rule set and forgetting order: runs stay finite and resume bit-equal."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage
from storage.replay import ReplayView
from tests.training.tiny import ROUND, differences, longer, rows, run, tiny_config
from training.checkpoints.checkpoint import last_checkpoint
from training.checkpoints.checkpoint_file import read_checkpoint
from training.checkpoints.plain_state import as_arrays
from training.config import (
    PrioritySettings,
    ReplayConfig,
    RunConfig,
    SequenceSettings,
    VRacerConfig,
)
from training.engines.compiler import compiler_problem
from training.refer import PRESETS

SCHEMES: dict[str, dict[str, Any]] = {
    "uniform": {},
    "per": {"scheme": "per"},
    "pser max": {"scheme": "pser"},
    "pser add": {"scheme": "pser", "sequences": SequenceSettings(mode="add", decay_on_insert=True)},
}
ORDERS = ("oldest", "most_far", "largest_divergence")
OVERLAY = ("priority", "importance_ratio", "far", "divergence", "value", "value_target")
WARMUP_ROUNDS = 7
"""Rounds until the first update; then windows are full and forget at every update."""


def settings(rules: str, engine: str = "fused") -> VRacerConfig:
    """A learning rate at which steps become far within some hundred updates."""
    return VRacerConfig(
        hidden=[8, 8],
        batch_size=16,
        scaling_interval=20,
        learning_rate=3e-3,
        engine=engine,
        refer=dataclasses.replace(PRESETS[rules], c=1.0),
    )


def config(scheme: str, rules: str, forget: str, *, rounds: int = 20, **other: Any) -> RunConfig:
    engine = other.pop("engine", "fused")
    own = SCHEMES[scheme] | {"forget": forget} | other
    return tiny_config(
        rounds=rounds, checkpoint_rounds=100, window=96, agent=settings(rules, engine), **own
    )


def cases() -> list[Any]:
    """All rule sets by scheme, the forgetting orders going round."""
    found = []
    for i, scheme in enumerate(SCHEMES):
        for k, rules in enumerate(PRESETS):
            forget = ORDERS[(i + k) % len(ORDERS)]
            found.append(pytest.param(scheme, rules, forget, id=f"{scheme}, {rules}, {forget}"))
    return found


def state(folder: Path, kind: str = "OnlineExperience") -> dict[str, Any]:
    """What a run's checkpoint holds of learning and replay: parameters, overlay columns, draws."""
    kept = read_checkpoint(folder / "checkpoints" / "last.ckpt")
    return {
        "parameters": kept["state_dict"],
        "optimizer": kept["optimizer_states"],
        "learning": kept["sharpwave"]["learning"],
        "view": kept[kind]["view"],
    }


def next_batch(
    run_config: RunConfig, folder: Path, store: Path, **options: Any
) -> list[np.ndarray]:
    """Segments, rows, sampling weights and priorities of the batch that the run would draw next."""
    kind = "OfflineExperience" if options else "OnlineExperience"
    kept = read_checkpoint(last_checkpoint(folder))[kind]
    replay = run_config.replay
    with (
        storage.open(store) as opened,
        opened.replay(
            replay.window,
            replay.scheme,
            priorities=replay.priorities,
            sequences=replay.sequences,
            forget=replay.forget,
            seed=run_config.seed,
            private=True,
            **options,
        ) as view,
    ):
        view.load_state_dict(as_arrays(kept["view"]))
        batch = view.sample(16)
        priority = view.read("priority", batch.segment, batch.row)
        return [batch.segment.copy(), batch.row.copy(), batch.sampling_weight.copy(), priority]


@pytest.mark.parametrize(("scheme", "rules", "forget"), cases())
def test_eight_rounds_of_learning_are_four_a_stop_and_four(tmp_path, scheme, rules, forget):
    whole = config(scheme, rules, forget, rounds=WARMUP_ROUNDS + 8)
    module = run(whole, tmp_path / "straight")
    assert module.counters.updates > 100
    run(whole, tmp_path / "resumed", max_steps=WARMUP_ROUNDS + 4)
    run(whole, tmp_path / "resumed", resume=True)
    straight, resumed = state(tmp_path / "straight"), state(tmp_path / "resumed")
    assert differences(straight, resumed) == []
    assert rows(tmp_path / "straight") == rows(tmp_path / "resumed")
    columns = as_arrays(straight["view"])["overlay"]
    assert set(OVERLAY) <= set(columns)
    for name in OVERLAY:
        assert np.isfinite(columns[name]).all(), name
    assert (len(np.unique(columns["priority"])) > 20) == (scheme != "uniform")
    drawn = [next_batch(whole, folder, folder / "store") for folder in tmp_path.iterdir()]
    for left, right in zip(*drawn, strict=True):
        assert np.array_equal(left, right)
    assert (drawn[0][2].min() < 1) == (scheme != "uniform")


@pytest.mark.parametrize("scheme", ["per", "pser add"])
@pytest.mark.parametrize("forget", ORDERS)
def test_three_hundred_steps_stay_finite(tmp_path, scheme, forget):
    run(config(scheme, "ReF-ER", forget, rounds=19), tmp_path)
    last = rows(tmp_path)[-1]
    assert int(last["environment_steps"]) == 19 * ROUND
    for name in ("loss", "gradient_norm", "far_fraction", "beta", "priority_error"):
        assert np.isfinite(float(last[name])), name
    assert 96 <= int(last["stored_steps"]) < 96 + 60


def test_the_order_of_forgetting_decides_which_episodes_stay(tmp_path):
    kept = {}
    for forget in ORDERS:
        run(config("per", "ReF-ER-1", forget, rounds=20), tmp_path / forget)
        kept[forget] = as_arrays(state(tmp_path / forget)["view"])["episodes"][:, 1]
    assert (np.diff(kept["oldest"]) == 1).all()
    for forget in ORDERS[1:]:
        assert (np.diff(kept[forget]) > 1).any(), forget
    assert not np.array_equal(kept["most_far"], kept["largest_divergence"])


def test_sequences_without_decay_and_floor_are_per(tmp_path):
    """And with them they are not: the run's own settings reach the scheme."""
    found = {}
    for name, sequences in {
        "none": SequenceSettings(decay=0.0, eta=0.0),
        "decay": SequenceSettings(eta=0.0),
        "floor": SequenceSettings(decay=0.0),
    }.items():
        run(config("pser max", "ER", "oldest", rounds=12, sequences=sequences), tmp_path / name)
        found[name] = state(tmp_path / name)
    run(config("per", "ER", "oldest", rounds=12), tmp_path / "per")
    per = state(tmp_path / "per")
    for name, each in found.items():
        same = differences(per["parameters"], each["parameters"]) == []
        assert same == (name == "none"), name


@pytest.mark.parametrize("engine", ["eager", "compiled"])
def test_other_engines_resume_prioritized_runs_bit_equal(tmp_path, engine):
    if engine == "compiled" and compiler_problem() is not None:
        pytest.skip(str(compiler_problem()))
    whole = config("pser max", "ReF-ER", "oldest", rounds=WARMUP_ROUNDS + 4, engine=engine)
    run(whole, tmp_path / "straight")
    run(whole, tmp_path / "resumed", max_steps=WARMUP_ROUNDS + 2)
    run(whole, tmp_path / "resumed", resume=True)
    straight, resumed = state(tmp_path / "straight"), state(tmp_path / "resumed")
    assert differences(straight, resumed) == []
    assert straight["learning"]["engine"] == engine


@pytest.mark.parametrize("scheme", ["uniform", "per", "pser max"])
def test_a_fixed_store_is_resumed_bit_equal(tmp_path, scheme):
    run(config("uniform", "ER", "oldest", rounds=12), tmp_path / "source")
    store = tmp_path / "source" / "store"
    whole = config(scheme, "ReF-ER", "most_far", rounds=8)
    whole = dataclasses.replace(whole, replay=dataclasses.replace(whole.replay, store=str(store)))
    run(whole, tmp_path / "straight")
    run(whole, tmp_path / "resumed", max_steps=4)
    run(whole, tmp_path / "resumed", resume=True)
    folders = [tmp_path / name for name in ("straight", "resumed")]
    states = [state(folder, "OfflineExperience") for folder in folders]
    assert differences(*states) == []
    drawn = [next_batch(whole, each, store, overlay_root=each) for each in folders]
    for left, right in zip(*drawn, strict=True):
        assert np.array_equal(left, right)
    if scheme != "uniform":
        logged = [float(row["sampling_exponent"]) for row in rows(folders[0])]
        draws = [int(row["updates"]) for row in rows(folders[0])]
        assert logged == pytest.approx([0.4 + 0.6 * (n - 1) / (8 * ROUND) for n in draws])
    with storage.open(store) as opened:
        assert not opened.overlay().segment(0, 10).array("priority").any()


@pytest.mark.parametrize("initial", ["max_ever", "current_td", "constant"])
def test_first_priorities_come_as_asked(tmp_path, monkeypatch, initial):
    """Read as each episode enters: by "current_td" they come from the values of acting."""
    seen: list[tuple[np.ndarray, ...]] = []
    original = ReplayView.admit

    def watched(self, record, values, **options):
        original(self, record, values, **options)
        row = np.arange(record.start, record.start + record.length)
        segment = np.full(row.size, record.segment)
        names = ("priority", "value_target", "value")
        seen.append(tuple(self.read(name, segment, row) for name in names))

    monkeypatch.setattr(ReplayView, "admit", watched)
    priorities = PrioritySettings(initial=initial, initial_constant=0.125, epsilon=0.5)
    run(config("per", "ER", "oldest", rounds=16, priorities=priorities), tmp_path)
    assert len(seen) > 10
    for priority, target, value in seen:
        expected = {
            "constant": np.full(priority.size, 0.125),
            "current_td": np.abs(target - value) + 0.5,
            "max_ever": np.full(priority.size, priority[0]),
        }
        assert priority == pytest.approx(expected[initial], rel=1e-5)
    firsts = [priority[0] for priority, _, _ in seen]
    assert (len(set(firsts)) > 1) == (initial != "constant")
    assert (firsts == sorted(firsts)) == (initial != "current_td")


def test_a_longer_budget_stretches_the_weights_exponent(tmp_path):
    """A resumed run goes on at the exponent that its present budget gives to the draw."""
    first = config("per", "ReF-ER", "oldest", rounds=17)
    run(first, tmp_path)
    later = longer(first, 27)
    run(later, tmp_path, resume=True)
    found = {
        int(row["updates"]): float(row["sampling_exponent"])
        for row in rows(tmp_path)
        if row["loss"]
    }
    planned = {at: 17 * ROUND - 100 if at <= 17 * ROUND - 100 else 27 * ROUND - 100 for at in found}
    assert len(set(planned.values())) == 2
    for draw, exponent in found.items():
        assert exponent == pytest.approx(0.4 + 0.6 * min((draw - 1) / planned[draw], 1.0))


@pytest.mark.parametrize(("ratio", "planned"), [(1.0, 92), (0.5, 46)])
def test_an_open_number_of_draws_is_that_of_the_planned_updates(tmp_path, ratio, planned):
    """Bit for bit: the weights that multiply gradients have that exponent."""
    found = {}
    for draws in (None, planned, planned + 1):
        priorities = PrioritySettings(beta_draws=draws)
        own = config("per", "ER", "oldest", rounds=12, ratio=ratio, priorities=priorities)
        found[draws] = run(own, tmp_path / str(draws)).state_dict()
    assert differences(found[None], found[planned]) == []
    assert differences(found[None], found[planned + 1]) != []


def test_a_given_number_of_draws_is_kept(tmp_path):
    fixed = PrioritySettings(beta_draws=50)
    run(config("per", "ReF-ER", "oldest", rounds=17, priorities=fixed), tmp_path)
    assert float(rows(tmp_path)[-1]["sampling_exponent"]) == 1.0


def test_uniform_runs_feed_no_errors_back_and_log_none(tmp_path):
    module = run(config("uniform", "ReF-ER", "oldest", rounds=17), tmp_path)
    assert "priority_error" not in module._newest.learnt
    assert "sampling_exponent" not in rows(tmp_path)[-1]
    assert ReplayConfig().prioritized is False
