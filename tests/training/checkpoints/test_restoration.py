"""Open episodes in environments that do not show again what they had shown."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.callbacks import Callback

import storage
from storage.errors import CheckpointError, EnvironmentFaultError
from tests.training.tiny import differences, longer, run, tiny_config
from tests.training.zoo import LongDrift
from training.assembly import build, trainer
from training.checkpoints.checkpoint_file import read_checkpoint
from training.environments.replayability import NotReplayableWarning

SWITCH = "SHARPWAVE_TEST_MOOD"
"""Says in the environment variables, which lane processes inherit, how a replay goes wrong."""


class Moody(LongDrift):
    """As LongDrift, unless SWITCH says otherwise of the fourth step of every episode."""

    def reset(self, **options: Any) -> Any:
        self._taken = 0
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        self._taken += 1
        mood = os.environ.get(SWITCH) if self._taken == 4 else ""
        if mood == "raises":
            raise ValueError("out of order")
        if mood == "observation":
            observation = observation + 1e-9
        if mood == "reward":
            reward += 1e-3
        return observation, reward, terminated or mood == "ends", truncated, info


def _config(rounds: int, lanes: int = 1, kind: str = "serial"):
    return tiny_config(
        rounds=rounds,
        lanes=lanes,
        lane_kind=kind,
        environment="tests.training.checkpoints.test_restoration.Moody",
    )


def _stopped(folder: Path, lanes: int = 1, kind: str = "serial") -> dict[int, int]:
    """Lanes with an open episode at the checkpoint, and its number."""
    run(_config(8, lanes, kind), folder)
    position = read_checkpoint(folder / "checkpoints/last.ckpt")["OnlineExperience"]["position"]
    opened = {lane: kept["open"] for lane, kept in enumerate(position["lanes"]) if kept["open"]}
    assert all(each["steps"] > 4 for each in opened.values())
    return {lane: each["lane_episode"] for lane, each in opened.items()}


@pytest.mark.parametrize("kind", ["serial", "sync", "async"])
@pytest.mark.parametrize(
    ("mood", "message"),
    [
        ("observation", "lane {lane} from step 4 of episode {episode}, observation"),
        ("reward", "lane {lane} from step 3 of episode {episode}, reward"),
    ],
)
def test_other_observations_and_rewards_are_said(tmp_path, monkeypatch, kind, mood, message):
    opened = _stopped(tmp_path, 2, kind)
    assert opened
    monkeypatch.setenv(SWITCH, mood)
    with pytest.warns(NotReplayableWarning, match="it is not bit-exact") as said:
        run(longer(_config(8, 2, kind), 9), tmp_path, resume=True)
    text = " ".join(str(each.message) for each in said)
    for lane, episode in opened.items():
        assert message.format(lane=lane, episode=episode) in text
    with storage.open(tmp_path / "store") as store:
        assert store.n_steps == 9 * 16


@pytest.mark.parametrize("kind", ["serial", "sync", "async"])
def test_an_episode_that_ends_when_it_is_replayed_is_an_error(tmp_path, monkeypatch, kind):
    opened = _stopped(tmp_path, 2, kind)
    lane = min(opened)
    monkeypatch.setenv(SWITCH, "ends")
    message = rf"last\.ckpt: lane {lane}, episode {opened[lane]} ended at step 4"
    with pytest.raises(CheckpointError, match=message):
        run(longer(_config(8, 2, kind), 9), tmp_path, resume=True)
    monkeypatch.delenv(SWITCH)
    run(longer(_config(8, 2, kind), 9), tmp_path, resume=True)
    assert not list((tmp_path / "store/orphans").iterdir())


@pytest.mark.parametrize("kind", ["serial", "sync", "async"])
def test_a_fault_while_an_episode_is_replayed_names_lane_episode_and_step(
    tmp_path, monkeypatch, kind
):
    opened = _stopped(tmp_path, 2, kind)
    lane = min(opened)
    monkeypatch.setenv(SWITCH, "raises")
    message = rf"lane {lane}, episode {opened[lane]}, step 3.*out of order"
    with pytest.raises(EnvironmentFaultError, match=message):
        run(longer(_config(8, 2, kind), 9), tmp_path, resume=True)
    monkeypatch.delenv(SWITCH)
    run(longer(_config(8, 2, kind), 9), tmp_path, resume=True)
    assert not list((tmp_path / "store/orphans").iterdir())


class _Watch(Callback):
    """Which lanes have an open episode after each round."""

    def __init__(self) -> None:
        self.opened: list[int] = []

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        lanes = trainer.datamodule._writer.position().lanes
        self.opened.append(sum(lane.open is not None for lane in lanes))


@pytest.mark.parametrize("kind", ["serial", "sync", "async"])
def test_lanes_with_and_without_an_open_episode_are_restored(tmp_path, kind):
    """Of three lanes one at least has just ended its episode when the run stops."""
    config = tiny_config(steps=240, lanes=3)
    loop = dataclasses.replace(config.loop, round_steps=3, lane_kind=kind)
    config = dataclasses.replace(config, loop=loop)
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    module, data = build(config, straight)
    made, watch = trainer(config, straight), _Watch()
    made.callbacks.append(watch)
    made.fit(module, data)
    stop = next(at for at in range(40, 80) if 0 < watch.opened[at - 1] < 3)
    run(config, resumed, max_steps=stop)
    run(config, resumed, resume=True)
    states = [read_checkpoint(each / "checkpoints/last.ckpt") for each in (straight, resumed)]
    for part in ("state_dict", "optimizer_states"):
        assert differences(states[0][part], states[1][part]) == []
    assert differences(*(state["OnlineExperience"]["view"] for state in states)) == []
    assert len({storage.content_hash(each / "store") for each in (straight, resumed)}) == 1
