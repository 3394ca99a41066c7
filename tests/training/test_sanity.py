"""Learning that leaves the numbers stops, says why, and spoils no checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from storage.errors import DivergenceError, NonFiniteError
from tests.training.tiny import run, tiny_config
from training.agents.ddpg.config import DdpgConfig
from training.agents.dqn.config import DqnConfig
from training.agents.naf.config import NafConfig
from training.agents.vracer.config import VRacerConfig
from training.checkpoints.checkpoint_file import read_checkpoint
from training.refer import PRESETS
from training.sanity import check_parameters_sane, check_update, largest_weight

HUGE = {"learning_rate": 1e30, "engine": "eager", "hidden": [8], "batch_size": 16}
ER = PRESETS["ER"]


def feedback(loss: float, norm: float) -> dict[str, torch.Tensor]:
    return {"loss": torch.tensor(loss), "gradient_norm": torch.tensor(norm)}


@pytest.mark.parametrize(("loss", "norm"), [(np.nan, 1.0), (1.0, np.inf), (np.inf, np.nan)])
def test_a_loss_or_gradient_that_is_no_number_is_told(loss, norm):
    with pytest.raises(
        DivergenceError, match=r"the loss of update 1,024 is .* smaller agent\.lear"
    ):
        check_update(feedback(loss, norm), 1024)
    check_update(feedback(1e30, 1e30), 1024)


def test_weights_beyond_all_bounds_are_told_with_what_was_noticed():
    sane = [torch.tensor([1.0, -1e7]), torch.zeros(0), torch.tensor(3.0)]
    assert largest_weight(sane) == 1e7
    assert largest_weight([]) == 0.0
    check_parameters_sane(sane, 5)
    with pytest.raises(
        DivergenceError, match=r"weights reach 1e\+30 after 7 updates \(noticed by: "
    ):
        check_parameters_sane([torch.tensor([-1e30])], 7, NonFiniteError("raw_action"))
    for lost in (float("nan"), float("inf")):
        with pytest.raises(DivergenceError, match="weights are not finite after 7 updates"):
            check_parameters_sane([*sane, torch.tensor([1.0, lost])], 7)


CASES: dict[str, Any] = {
    "vracer": VRacerConfig(**HUGE, refer=ER),
    "ddpg": DdpgConfig(**HUGE, refer=ER),
    "ddpg actor": DdpgConfig(**HUGE | {"learning_rate": 1e-4}, actor_learning_rate=1e30, refer=ER),
    "naf": NafConfig(**HUGE, refer=ER),
    "dqn": DqnConfig(**HUGE, optimizer="adam", loss="squared"),
}


@pytest.mark.parametrize("scheme", ["uniform", "per"])
@pytest.mark.parametrize("name", CASES)
def test_every_agent_stops_and_its_checkpoints_stay_good(tmp_path: Path, name, scheme):
    environment = "CartPole-v1" if name == "dqn" else "InvertedPendulum-v5"
    config = tiny_config(
        agent=CASES[name],
        environment=environment,
        rounds=40,
        checkpoint_rounds=1,
        window=400,
    )
    config = dataclasses.replace(config, replay=dataclasses.replace(config.replay, scheme=scheme))
    with pytest.raises(DivergenceError, match="learning diverged"):
        run(config, tmp_path)
    for path in sorted((tmp_path / "checkpoints").iterdir()):
        read_checkpoint(path)
