"""Updating: microseconds one V-RACER update of 256 steps takes, forward, backward and Adam."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import get_args

import torch

from bench.cheetah import ACTIONS, BATCH, HIDDEN, OBSERVATIONS
from bench.figure import Figure
from bench.timing import median_microseconds
from training.adam import make_adam
from training.compiled_engine import CompiledEngine, compiler_problem
from training.engine import EagerEngine, Engine
from training.engine_choice import EngineName
from training.fused_engine import FusedEngine
from training.network import VRacerNetwork
from training.refer import ReferSettings
from training.tensor_batch import TensorBatch
from training.vracer_gradient import VRacerGradient
from training.vracer_stage import VRacerStage

__all__ = ["matrix_products", "measure"]


def measure(folder: Path) -> list[Figure]:
    """One figure an engine, beside the bare matrix products."""
    torch.set_num_threads(1)
    batch, schedule, limit = _batch(), _schedule(), matrix_products()
    figures = []
    for name in get_args(EngineName):
        if name == "compiled" and compiler_problem() is not None:
            continue
        engine = _engine(name)
        value = median_microseconds(partial(engine.update, batch, schedule), repeats=500)
        details = {"engine": name, "batch": BATCH, "hidden": [HIDDEN, HIDDEN]}
        figures.append(
            Figure(f"update, {name}", "µs", value, limit, "bare matrix products", details)
        )
    return figures


def _engine(name: EngineName) -> Engine:
    draw = torch.Generator().manual_seed(0)
    network = VRacerNetwork(OBSERVATIONS, ACTIONS, hidden=(HIDDEN, HIDDEN), generator=draw)
    parameters = dict(network.named_parameters())
    optimizer = make_adam(parameters.values(), learning_rate=1e-4)
    if name == "fused":
        return FusedEngine(VRacerGradient(network, ReferSettings(), 0.995), optimizer)
    kind = EagerEngine if name == "eager" else CompiledEngine
    return kind(VRacerStage(network, ReferSettings(), 0.995), parameters, optimizer)


def matrix_products() -> float:
    """Products of forward and backward with preallocated results, nothing else."""
    sizes = [OBSERVATIONS, HIDDEN, HIDDEN, 1 + ACTIONS]
    layers = []
    for fan_in, fan_out in pairwise(sizes):
        inputs, weight = torch.randn(BATCH, fan_in), torch.randn(fan_out, fan_in)
        gradient = torch.randn(BATCH, fan_out)
        outputs = torch.empty_like(gradient), torch.empty_like(weight), torch.empty_like(inputs)
        layers.append((inputs, weight, gradient, outputs))

    def products() -> None:
        for number, (inputs, weight, gradient, outputs) in enumerate(layers):
            torch.mm(inputs, weight.t(), out=outputs[0])
            torch.mm(gradient.t(), inputs, out=outputs[1])
            if number:
                torch.mm(gradient, weight, out=outputs[2])

    with torch.inference_mode():
        return median_microseconds(products, repeats=500)


def _batch() -> TensorBatch:
    draw = torch.Generator().manual_seed(0)
    matrix = torch.randn(BATCH, ACTIONS, generator=draw) * 0.4
    vector = torch.randn(BATCH, generator=draw)
    stdev = torch.full((BATCH, ACTIONS), 0.4472136)
    normal = torch.distributions.Normal(torch.zeros_like(stdev), stdev)
    return TensorBatch(
        observation=torch.randn(BATCH, OBSERVATIONS, generator=draw),
        raw_action=matrix,
        reward=vector,
        next_value_target=vector.clone(),
        behaviour_mean=torch.zeros_like(stdev),
        behaviour_stdev=stdev,
        behaviour_log_density=normal.log_prob(matrix).sum(1),
        sampling_weight=torch.ones(BATCH),
    )


def _schedule() -> dict[str, torch.Tensor]:
    values = {"learning_rate": 1e-4, "beta": 0.5, "far_bound": 5.0, "reward_scale": 1.0}
    return {name: torch.tensor(value) for name, value in values.items()}
