"""Which engine runs an agent's updates: as asked, or the fastest one that fits."""

from __future__ import annotations

from typing import Literal, get_args

from storage.errors import CheckpointError, ConfigError
from training.engines.compiler import compiler_problem

__all__ = ["EngineName", "EngineWish", "check_engine", "choose_engine", "keep_engine"]

EngineName = Literal["eager", "compiled", "fused"]
EngineWish = Literal["auto", "eager", "compiled", "fused"]

COMPILED_FROM = 50_000
"""Updates from which compiling pays: it takes some twenty seconds and saves half of an update."""


def choose_engine(
    wish: EngineWish, *, updates: int, fused: bool, device: str = "cpu"
) -> EngineName:
    """Name the engine for a run of that many updates on a device of torch (``cpu``, ``cuda``).

    ``fused`` says whether the agent knows its gradient in closed form. ``auto`` takes the fused
    engine where there is one, on the CPU; else the compiled one for long runs where a compiler is
    found; else the eager one.

    Raises:
        ConfigError: the engine that was asked for cannot run here, there or for this agent.

    """
    check_engine(wish, device)
    if wish == "fused" and not fused:
        raise ConfigError(
            "agent.engine: fused is not possible for this agent; by hand there are V-RACER, and "
            "NAF and DDPG with layers of softsign or relu, DDPG with the action as the critic's "
            "input (agent.critic_action_layer: 0): choose auto"
        )
    if wish != "auto":
        return wish
    if fused and device == "cpu":
        return "fused"
    pays = updates >= COMPILED_FROM and compiler_problem(device) is None
    return "compiled" if pays else "eager"


def keep_engine(recorded: str, wish: EngineWish) -> EngineName:
    """Name the engine of a resumed run: always the recorded one, so that no bit changes.

    Raises:
        CheckpointError: another one was asked for, or this release has none of that name.

    """
    if recorded not in get_args(EngineName):
        raise CheckpointError(f"the checkpoint was made by an engine {recorded!r} that is unknown")
    if wish not in ("auto", recorded):
        raise CheckpointError(
            f"the checkpoint was made by the {recorded} engine; a resumed run cannot change to "
            f"{wish}, because its numbers would differ in the last bits"
        )
    return recorded  # type: ignore[return-value]


def check_engine(wish: EngineWish, device: str, *, recorded: bool = False) -> None:
    """Refuse an engine that this machine or device cannot run; ``auto`` always fits.

    ``recorded`` says that a checkpoint names it, so that the run can have no other.

    Raises:
        ConfigError: no such engine, no compiler for it, or fused updates away from the CPU.

    """
    if wish not in get_args(EngineWish):
        raise ConfigError(
            f"there is no engine {wish!r}; choose one of {', '.join(get_args(EngineWish))}"
        )
    if wish == "fused" and device != "cpu":
        raise ConfigError(
            f"engine: fused runs on the CPU only, not on {device}; choose engine: auto, or "
            "loop.accelerator: cpu"
        )
    problem = compiler_problem(device) if wish == "compiled" else None
    if problem is not None:
        other = "or start a new run: this one was trained by it" if recorded else "or choose auto"
        raise ConfigError(f"engine: compiled is not possible here: {problem}; {other}")
