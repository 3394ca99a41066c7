"""The engine of a run: the one that was asked for, the recorded one, or the fastest that fits."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from storage.errors import CheckpointError
from training.engines.adam import AdamRule
from training.engines.compiled_engine import CompiledEngine
from training.engines.engine import EagerEngine
from training.engines.engine_choice import check_engine, choose_engine, keep_engine
from training.engines.fallback_engine import FallbackEngine
from training.engines.fused_engine import FusedEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.optim import Adam, Optimizer

    from training.engines.closed_form import ClosedForm
    from training.engines.engine import Engine
    from training.engines.engine_choice import EngineWish
    from training.engines.update_rule import RuleMaker
    from training.stage import Parameters, Stage

__all__ = ["make_engine"]


def make_engine(
    stage: Stage,
    parameters: Parameters,
    optimizer: Optimizer,
    *,
    wish: EngineWish,
    recorded: str | None = None,
    updates: int,
    max_gradient_norm: float = math.inf,
    rule: RuleMaker = AdamRule,
    closed_form: Callable[[], ClosedForm] | None = None,
) -> Engine:
    """Make the engine that runs an agent's updates, on the optimizer's present state.

    Call it when training starts or resumes, after every checkpoint has been loaded, and record the
    ``name`` of what comes back once an update has run.

    Args:
        stage: The loss.
        parameters: What it is differentiated by.
        optimizer: Owner of the parameters and of the state that ``rule`` changes.
        wish: The setting ``agent.engine``.
        recorded: Name of the engine that ran the updates before a checkpoint; None without any.
        updates: Updates planned for the whole run: compiling pays in long runs only.
        max_gradient_norm: Length that longer gradients are shortened to.
        rule: The optimizer's formula.
        closed_form: Makes the stage's gradient in closed form, if it has one that goes with Adam;
            what ``rule`` does besides Adam is its own to do.

    Raises:
        ConfigError: the engine cannot run here, on this device or for this agent.
        CheckpointError: the recorded engine is unknown, not the one that is asked for, or fused
            where there is no closed form any more.

    """
    device = next(iter(parameters.values())).device.type
    if recorded is None:
        fused = closed_form is not None
        name = choose_engine(wish, updates=updates, fused=fused, device=device)
    else:
        name = keep_engine(recorded, wish)
        check_engine(name, device, recorded=True)
        if name == "fused" and closed_form is None:
            raise CheckpointError(
                "the checkpoint's updates were run by the fused engine, but this agent has no "
                "gradients by hand for these settings; go on with the settings and the code of then"
            )
    if closed_form is not None and name == "fused":
        adam = cast("Adam", optimizer)
        return FusedEngine(closed_form(), adam, max_gradient_norm=max_gradient_norm)
    settings: Any = {"max_gradient_norm": max_gradient_norm, "rule": rule}
    make_eager = partial(EagerEngine, stage, parameters, optimizer, **settings)
    if name == "eager":
        return make_eager()
    compiled = CompiledEngine(stage, parameters, optimizer, **settings)
    insisted = wish == "compiled" or recorded is not None
    return compiled if insisted else FallbackEngine(compiled, make_eager)
