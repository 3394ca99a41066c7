"""The loop that is measured: V-RACER on Hopper-v5, in a frame of more or less of Lightning."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from lightning.pytorch.callbacks import Callback

import training
from bench.eager_policy import EagerActor, EagerPolicy
from training.config import (
    CheckpointConfig,
    EvaluationConfig,
    LoggingConfig,
    LoopConfig,
    RunConfig,
    VRacerConfig,
)
from training.engines.engine_choice import EngineName
from training.environments.environment_config import EnvironmentConfig
from training.progress import RunProgress

if TYPE_CHECKING:
    import lightning

__all__ = ["ACTIONS", "ENVIRONMENT", "OBSERVATIONS", "STRETCH", "Frame", "LoopSetup", "play"]

ENVIRONMENT: Final = "Hopper-v5"
OBSERVATIONS: Final = 11
ACTIONS: Final = 3
STRETCH: Final = 31
"""Rounds of 64 steps from one checkpoint to the next."""
CHECKPOINT_STEPS: Final = 2_000
"""Oftener than by default, so that every stretch has one."""

Frame = Literal["direct", "fit", "whole"]
RoundEnded = Callable[[Any], bool]
"""Called with the agent at every round's end; whether to go on."""


@dataclass(frozen=True, slots=True)
class LoopSetup:
    """One loop to measure; may be sent to another process."""

    name: str
    engine: EngineName = "fused"
    frame: Frame = "whole"
    """Rounds called directly, through Trainer.fit alone, or with logs, checkpoints and a bar."""
    torch_acting: bool = False
    """Acts through torch's modules instead of the kernel."""
    lanes: int = 1
    lane_kind: Literal["serial", "sync", "async"] = "serial"
    rounds: int = STRETCH
    """Rounds a stretch."""
    warmup: int = 2_000
    updates_before: int = 500
    """Updates after which the loop is in its stride, and measuring begins."""

    def config(self) -> RunConfig:
        """The run's settings: defaults but for evaluation, checkpoints and left out logging."""
        silent = LoggingConfig(every_steps=10**9, csv=False, tensorboard=False, progress=False)
        return RunConfig(
            EnvironmentConfig(ENVIRONMENT),
            agent=VRacerConfig(engine=self.engine),
            loop=LoopConfig(
                steps=10**7 * self.lanes,
                warmup=self.warmup,
                lanes=self.lanes,
                lane_kind=self.lane_kind,
            ),
            evaluation=EvaluationConfig(episodes=0),
            checkpoint=CheckpointConfig(every_steps=CHECKPOINT_STEPS),
            logging=LoggingConfig(progress=False) if self.frame == "whole" else silent,
        )


def play(setup: LoopSetup, folder: Path, round_ended: RoundEnded, *more: Callback) -> None:
    """Plays the loop until `round_ended` says no."""
    config = setup.config()
    module, data = training.build(config, folder)
    if setup.torch_acting:
        agent: Any = module
        actor = EagerActor(agent.network, agent.observation_scaling, seed=config.seed)
        module.policy = EagerPolicy(actor, module.spec)
    if setup.frame == "direct":
        _play_directly(module, data, round_ended)
        return
    options = {} if setup.frame == "whole" else {"logger": False, "callbacks": []}
    if setup.frame == "fit":
        options["enable_checkpointing"] = False
    trainer = training.trainer(config, folder, **options)
    hooks: list[Any] = trainer.callbacks  # type: ignore[attr-defined]
    if setup.frame == "whole":
        hooks.append(RunProgress(_Terminal()))
    hooks += [*more, _RoundEnds(round_ended)]
    trainer.fit(module, data)


def _play_directly(module: Any, data: Any, round_ended: RoundEnded) -> None:
    """What is left of a run without a Trainer: its rounds."""
    module.bind(module.configure_optimizers())
    data.begin(module)
    try:
        while True:
            data.play_round(module)
            if not round_ended(module):
                break
    finally:
        data.teardown()


class _RoundEnds(Callback):
    """Comes last of all callbacks, so that a round's checkpoint belongs to that round."""

    def __init__(self, round_ended: RoundEnded) -> None:
        self._round_ended = round_ended

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        if not self._round_ended(pl_module):
            trainer.should_stop = True


class _Terminal(io.StringIO):
    """A terminal that shows nothing, for the bar to draw on."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)
