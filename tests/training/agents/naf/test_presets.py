from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from training.agents.naf.config import NafConfig
from training.config import RunConfig
from training.config_file import from_mapping, to_mapping

CONFIGS = Path(__file__).parents[4] / "configs"


def merged(*names: str) -> dict[str, Any]:
    """Files one behind the other, as a run takes them."""

    def over(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
        deeper = {
            key: over(low[key], value)
            for key, value in high.items()
            if isinstance(value, dict) and isinstance(low.get(key), dict)
        }
        return low | high | deeper

    whole: dict[str, Any] = {}
    for name in names:
        whole = over(whole, yaml.safe_load((CONFIGS / name).read_text()))
    return whole


def test_the_preset_shows_every_setting_of_the_agent_at_its_default():
    assert merged("naf.yaml") == {"agent": to_mapping(NafConfig())}


def test_it_composes_behind_a_task_and_with_the_rules():
    config = from_mapping(RunConfig, merged("hopper.yaml", "naf.yaml", "er.yaml", "per.yaml"))
    assert isinstance(config.agent, NafConfig)
    assert (config.agent.refer.rule_1, config.agent.refer.rule_2) == (False, False)
    assert (config.environment.id, config.replay.scheme) == ("Hopper-v5", "per")


def test_the_original_papers_values():
    config = from_mapping(RunConfig, merged("hopper.yaml", "naf_gu.yaml"))
    agent = config.agent
    assert isinstance(agent, NafConfig)
    assert (agent.hidden, agent.activation, agent.diagonal) == ([200, 200], "relu", "exp")
    assert (agent.output_bound, config.loop.updates_per_step) == (3e-3, 5.0)
    assert (agent.refer.rule_1, agent.refer.rule_2, agent.noise) == (
        False,
        False,
        "ornstein_uhlenbeck",
    )
