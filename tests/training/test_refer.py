from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from storage.errors import ConfigError
from training.refer import (
    PRESETS,
    ReferSettings,
    annealed,
    beta_rate,
    blend,
    far_bound,
    near_mask,
    next_beta,
    preset,
)

FULL = ReferSettings()


@pytest.mark.parametrize(
    ("start", "far_fraction", "expected"),
    [
        (0.0, 0.05, 0.000299970001),
        (1.0, 0.2, 0.999700029999),
        (0.3, 0.1, 0.3002099790),
        (0.3, 0.11, 0.2999100090),
    ],
)
def test_three_updates_of_beta(start, far_fraction, expected):
    beta = start
    for _ in range(3):
        beta = next_beta(FULL, beta, rate=1e-4, far_fraction=far_fraction)
    assert beta == pytest.approx(expected, abs=5e-11)


@pytest.mark.parametrize(("updates", "expected"), [(10_000, 0.6321389536), (100_000, 0.9999546228)])
def test_beta_grows_from_zero_while_steps_are_near(updates, expected):
    beta = 0.0
    for _ in range(updates):
        beta = next_beta(FULL, beta, rate=1e-4, far_fraction=0.0)
    assert beta == pytest.approx(expected, abs=5e-11)


@pytest.mark.parametrize(
    ("window", "batch", "expected"),
    [
        (2**18, 256, 9.765625e-5),
        (2**19, 256, 4.8828125e-5),
        (65_536, 256, 3.90625e-4),
        (16_384, 128, 7.8125e-4),
        (4_096, 64, 1.5625e-3),
    ],
)
def test_beta_rate_follows_the_memory(window, batch, expected):
    rate = beta_rate(FULL, batch_size=batch, window=window, stored=100, learning_rate=1e-4)
    assert rate == pytest.approx(expected, rel=1e-12)
    larger = beta_rate(FULL, batch_size=batch, window=1, stored=window, learning_rate=1e-4)
    assert larger == rate


def test_beta_rate_of_the_paper_is_the_learning_rate():
    settings = ReferSettings(beta_rate="learning_rate")
    rate = beta_rate(settings, batch_size=256, window=1, stored=1, learning_rate=3e-5)
    assert rate == 3e-5


@pytest.mark.parametrize(
    ("update", "bound", "factor"),
    [
        (0, 5.0, 1.0),
        (10**5, 4.8095238, 0.9523810),
        (2 * 10**5, 4.6363636, 0.9090909),
        (10**6, 3.6666667, 0.6666667),
        (2 * 10**6, 3.0, 0.5),
        (5 * 10**6, 2.1428571, 0.2857143),
        (10**7, 1.6666667, 0.1666667),
    ],
)
def test_annealing(update, bound, factor):
    assert far_bound(FULL, update) == pytest.approx(bound, abs=5e-8)
    assert annealed(1.0, FULL.annealing, update) == pytest.approx(factor, abs=5e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_of_seven_are_far_and_ties_are_near(dtype):
    ratio = torch.tensor([0.1, 0.2, 0.21, 1, 4.99, 5, 5.01], dtype=dtype)
    near = near_mask(ratio, torch.tensor(5.0, dtype=dtype))
    assert near.tolist() == [False, True, True, True, True, True, False]


def test_presets_are_the_four_variants():
    rules = {name: (settings.rule_1, settings.rule_2) for name, settings in PRESETS.items()}
    assert rules == {
        "ER": (False, False),
        "ReF-ER-1": (True, False),
        "ReF-ER-2": (False, True),
        "ReF-ER": (True, True),
    }
    assert all(settings.c == 4.0 for settings in PRESETS.values())
    assert preset("ER") is PRESETS["ER"]
    with pytest.raises(ConfigError, match=r"ReF-ER-3.*ReF-ER-2"):
        preset("ReF-ER-3")


def test_beta_without_rule_2_is_one():
    assert PRESETS["ER"].beta_start == 1.0
    assert next_beta(PRESETS["ER"], 1.0, rate=0.1, far_fraction=0.9) == 1.0
    assert PRESETS["ReF-ER-2"].beta_start == 0.0


def test_impossible_settings_are_all_named():
    with pytest.raises(ConfigError, match=r"c = -1.*far_target = 2"):
        ReferSettings(c=-1, far_target=2)


@pytest.mark.parametrize("name", PRESETS)
def test_c_of_0_goes_with_plain_replay_alone(name):
    if name == "ER":
        assert replace(PRESETS[name], c=0.0).c == 0.0
        return
    with pytest.raises(ConfigError, match=r"c = 0 makes every step far.*rule_1 and rule_2 to fal"):
        replace(PRESETS[name], c=0.0)


def blended_gradients(settings, *, beta_on_value):
    """Gradients of the blend for one near and one far step, policy, value and divergence apart."""
    policy, value, divergence = (torch.ones(2, requires_grad=True) for _ in range(3))
    loss = blend(
        settings,
        torch.tensor(0.25),
        torch.tensor([True, False]),
        torch.tensor([1.0, 2.0]),
        policy_loss=policy,
        value_loss=value,
        divergence=divergence,
        beta_on_value=beta_on_value,
    )
    leaves = (policy, value, divergence)
    gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [None if g is None else (2 * g).tolist() for g in gradients]


@pytest.mark.parametrize(
    ("name", "beta_on_value", "policy", "value", "divergence"),
    [
        ("ReF-ER", True, [0.25, 0.0], [0.25, 0.0], [0.75, 1.5]),
        ("ReF-ER", False, [0.25, 0.0], [1.0, 0.0], [0.75, 1.5]),
        ("ReF-ER-1", True, [1.0, 0.0], [1.0, 0.0], None),
        ("ReF-ER-2", True, [0.25, 0.5], [0.25, 0.5], [0.75, 1.5]),
        ("ReF-ER-2", False, [0.25, 0.5], [1.0, 2.0], [0.75, 1.5]),
        ("ER", True, [1.0, 2.0], [1.0, 2.0], None),
    ],
)
def test_blend_follows_the_table(name, beta_on_value, policy, value, divergence):
    gradients = blended_gradients(PRESETS[name], beta_on_value=beta_on_value)
    assert gradients == [policy, value, divergence]


def test_an_infinite_divergence_does_not_reach_plain_replay():
    one = torch.ones(1)
    loss = blend(
        PRESETS["ER"], one[0], one > 0, one, policy_loss=one, divergence=one * float("inf")
    )
    assert loss.item() == 1.0
