"""Every agent with every scheme and rule set runs, stays finite, and resumes bit-equal."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from typing import Any

import pytest
import torch

from storage.replay import SequenceSettings
from tests.training.test_resume_matrix import assert_same, fit, state_of
from tests.training.tiny import ROUND, tiny_config
from training.agent_config import AgentConfig
from training.agents.ddpg.config import DdpgConfig
from training.agents.dqn.config import DqnConfig
from training.agents.naf.config import NafConfig
from training.agents.vracer.config import VRacerConfig
from training.config import RunConfig
from training.refer import PRESETS

AGENTS: dict[str, tuple[type[AgentConfig], dict[str, Any]]] = {
    "vracer": (VRacerConfig, {}),
    "ddpg": (DdpgConfig, {}),
    "naf": (NafConfig, {}),
    # Rule 2 needs a policy with a gradient.
    "dqn": (DqnConfig, {"policy": "softmax", "target_interval": 20, "optimizer": "adam"}),
}
SCHEMES: dict[str, dict[str, Any]] = {
    "uniform": {"scheme": "uniform"},
    "per": {"scheme": "per"},
    "pser-max": {"scheme": "pser"},
    "pser-add": {"scheme": "pser", "sequences": SequenceSettings(mode="add", window=3)},
}
STEPS = 200
ALL = list(itertools.product(AGENTS, SCHEMES, PRESETS))
QUICK = [
    case
    for case, places in zip(ALL, itertools.product(range(4), repeat=3), strict=True)
    if sum(places) % 4 == 0
]
"""A quarter of all: each agent with every scheme and every rule set."""


def config(agent: str, scheme: str, rules: str) -> RunConfig:
    make, own = AGENTS[agent]
    refer = dataclasses.replace(PRESETS[rules], c=0.5, beta_initial=0.5)
    settings = make(hidden=[8, 8], batch_size=8, scaling_interval=20, refer=refer, **own)
    place = "Choices" if agent == "dqn" else "Drift"
    run = tiny_config(
        environment=f"tests.training.zoo.{place}", agent=settings, window=80, **SCHEMES[scheme]
    )
    loop = dataclasses.replace(run.loop, steps=STEPS, warmup=2 * ROUND)
    return dataclasses.replace(run, loop=loop)


@pytest.mark.parametrize(
    ("agent", "scheme", "rules"),
    [*QUICK, *(pytest.param(*case, marks=pytest.mark.soak) for case in ALL if case not in QUICK)],
)
def test_two_hundred_steps_are_finite_and_resume(tmp_path, agent, scheme, rules):
    run = config(agent, scheme, rules)
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    whole = fit(run, straight)
    state = state_of(straight)
    assert state["agent"]["counters"]["updates"] == STEPS - 2 * ROUND
    assert all(bool(torch.isfinite(each).all()) for each in state["parameters"].values())
    fit(run, resumed, max_steps=6)
    later = fit(run, resumed, "last.ckpt")
    assert_same(straight, resumed, (whole, later))


@pytest.mark.parametrize("scheme", ["per", "pser-max"])
@pytest.mark.parametrize("agent", AGENTS)
def test_going_back_behind_later_updates_leaves_no_trace_of_them(tmp_path, agent, scheme):
    """As after a kill: the episode that was open ends anew, in rows whose overlay is of later."""
    run = config(agent, scheme, "ER")
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    whole = fit(run, straight)
    fit(run, resumed, max_steps=6)
    checkpoint = resumed / "checkpoints/last.ckpt"
    earlier = shutil.copy(checkpoint, tmp_path / "earlier.ckpt")
    fit(run, resumed, "last.ckpt", max_steps=11)
    shutil.copy(earlier, checkpoint)
    later = fit(run, resumed, "last.ckpt")
    assert_same(straight, resumed, (whole, later))
