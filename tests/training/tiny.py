"""Tiny runs of the whole loop, for tests of what a run promises."""

from __future__ import annotations

import csv
import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from training.assembly import build, trainer
from training.checkpoints.checkpoint_file import read_checkpoint
from training.config import (
    CheckpointConfig,
    EnvironmentConfig,
    EvaluationConfig,
    LoggingConfig,
    LoopConfig,
    ReplayConfig,
    RunConfig,
    VRacerConfig,
)

if TYPE_CHECKING:
    from pathlib import Path

    from training.agent import ReplayAgent

ROUND = 16
WARMUP = 100


def tiny_config(
    *,
    rounds: int = 16,
    steps: int | None = None,
    lanes: int = 1,
    lane_kind: Any = "serial",
    environment: str = "tests.training.zoo.Drift",
    window: int = 160,
    ratio: float = 1.0,
    evaluate_every: int = 0,
    checkpoint_rounds: int = 8,
    seed: int = 1,
    agent: VRacerConfig | None = None,
    **replay: Any,
) -> RunConfig:
    """A run of seconds; ``replay`` are more settings of the replay memory."""
    return RunConfig(
        EnvironmentConfig(environment),
        seed=seed,
        agent=agent or VRacerConfig(hidden=[8, 8], batch_size=16, scaling_interval=20),
        replay=ReplayConfig(window=window, **replay),
        loop=LoopConfig(
            steps=steps or rounds * ROUND,
            warmup=WARMUP,
            lanes=lanes,
            lane_kind=lane_kind,
            round_steps=ROUND,
            updates_per_step=ratio,
        ),
        evaluation=EvaluationConfig(max(evaluate_every, 1), 2 if evaluate_every else 0),
        logging=LoggingConfig(every_steps=2 * ROUND, tensorboard=False, progress=False),
        checkpoint=CheckpointConfig(checkpoint_rounds * ROUND),
    )


def longer(config: RunConfig, rounds: int) -> RunConfig:
    loop = dataclasses.replace(config.loop, steps=rounds * ROUND)
    return dataclasses.replace(config, loop=loop)


def run(config: RunConfig, folder: Path, *, resume: bool = False, **options: Any) -> ReplayAgent:
    module, data = build(config, folder)
    checkpoint = folder / "checkpoints" / "last.ckpt" if resume else None
    trainer(config, folder, **options).fit(module, data, ckpt_path=checkpoint, weights_only=True)
    return module


def rows(folder: Path, *, without: tuple[str, ...] = ("wall_time",)) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open() as file:
        return [
            {key: value for key, value in row.items() if key not in without}
            for row in csv.DictReader(file)
        ]


def differences(left: Any, right: Any, at: str = "") -> list[str]:
    """Places where two nested states of tensors and plain values are not bit-equal."""
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return [f"{at}: keys {sorted(map(str, left.keys() ^ right.keys()))}"]
        return [d for key in left for d in differences(left[key], right[key], f"{at}/{key}")]
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        if len(left) != len(right):
            return [f"{at}: {len(left)} against {len(right)} entries"]
        pairs = enumerate(zip(left, right, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{at}[{i}]")]
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        same = left.dtype == right.dtype and left.shape == right.shape
        return [] if same and _bits(left) == _bits(right) else [at]
    return [] if left == right or (left != left and right != right) else [f"{at}: {left} {right}"]


def _bits(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().numpy().tobytes()


def checkpoint_content(folder: Path) -> dict[str, Any]:
    """What two runs that are the same have in common in their last checkpoints."""
    content = read_checkpoint(folder / "checkpoints" / "last.ckpt")
    content["sharpwave"]["counters"].pop("wall_time")
    content["sharpwave"].pop("config")
    content["OnlineExperience"].pop("store")
    position = content["OnlineExperience"]["position"]
    position.pop("store_uuid")
    # The checksum of a log covers the times that its records hold.
    position["segments"] = [each[:2] for each in position["segments"]]
    for lane in position["lanes"]:
        if lane["open"]:
            lane["open"].pop("begin_time")
    return {
        key: content[key]
        for key in (
            "state_dict",
            "optimizer_states",
            "sharpwave",
            "OnlineExperience",
            "global_step",
        )
    }
