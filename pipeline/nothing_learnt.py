"""Why a run ended without a single update, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.agent import ReplayAgent

__all__ = ["nothing_learnt"]


def nothing_learnt(agent: ReplayAgent) -> str | None:
    """One sentence of a run that has ended without an update; None of any other."""
    if agent.counters.updates:
        return None
    return f"nothing was learnt, the policy is the initial one: {_reason(agent)}"


def _reason(agent: ReplayAgent) -> str:
    loop, batch = agent.config.loop, agent.config.agent.batch_size
    ratio, started = loop.updates_per_step, agent.counters.origin_steps
    if not agent.learning:
        return (
            "an episode is learnt from once it has ended, and those that had ended before the run "
            f"did never held a batch of {batch:,} steps; raise loop.steps, give the environment a "
            "limit of steps (environment.wrappers TimeLimit), or lower agent.batch_size"
        )
    if not ratio:
        return "loop.updates_per_step is 0; set it to 1 or another number above 0"
    rest = loop.steps - started
    return (
        f"learning began at step {started:,} of {loop.steps:,}, and loop.updates_per_step "
        f"{ratio:g} makes no update of the {rest:,} steps since; raise it, or loop.steps"
    )
