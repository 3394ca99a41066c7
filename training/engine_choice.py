"""Which engine runs an agent's updates: as asked, or the fastest one that fits."""

from __future__ import annotations

from typing import Literal, get_args

from storage.errors import CheckpointError, ConfigError

__all__ = ["EngineName", "EngineWish", "choose_engine", "keep_engine"]

EngineName = Literal["eager", "compiled", "fused"]
EngineWish = Literal["auto", "eager", "compiled", "fused"]

COMPILED_FROM = 50_000
"""Updates from which compiling pays: it takes some twenty seconds and saves half of an update."""


def choose_engine(wish: EngineWish, *, updates: int, fused: bool) -> EngineName:
    """Name the engine for a run of that many updates.

    ``fused`` says whether the agent knows its gradient in closed form. ``auto`` takes the fused
    engine where there is one, else the compiled one for long runs where a compiler is found, else
    the eager one.

    Raises:
        ConfigError: the engine that was asked for cannot run here or for this agent.

    """
    if wish not in get_args(EngineWish):
        raise ConfigError(
            f"there is no engine {wish!r}; choose one of {', '.join(get_args(EngineWish))}"
        )
    if wish == "fused" and not fused:
        raise ConfigError("engine: fused is not possible for this agent; choose auto")
    if wish == "auto":
        return "fused" if fused else _compiled_or_eager(updates)
    if wish == "compiled":
        problem = _problem()
        if problem is not None:
            raise ConfigError(f"engine: compiled is not possible here: {problem}; choose auto")
    return wish


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


def _compiled_or_eager(updates: int) -> EngineName:
    return "compiled" if updates >= COMPILED_FROM and _problem() is None else "eager"


def _problem() -> str | None:
    from training.compiled_engine import compiler_problem

    return compiler_problem()
