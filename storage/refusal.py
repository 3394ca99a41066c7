"""The errors of steps that a writer refuses, in words."""

from __future__ import annotations

from storage.errors import ActionOutOfBoundsError, NonFiniteError, SchemaMismatchError
from storage.lane import Lane
from storage.layout import BehaviourKind
from storage.schema import Schema
from storage.step_values import integer

__all__ = ["bad_step", "beyond_int64", "misfit", "no_column", "no_parameters"]


_OF_THE_POLICY = ("raw_action", "behaviour")
"""Columns that no environment fills."""


def misfit(line: Lane, error: Exception | str) -> SchemaMismatchError:
    """A value of the wrong shape, dtype, kind or range, with the place of its step."""
    return SchemaMismatchError(f"{line.place}: {error}")


def beyond_int64(line: Lane, behaviour_kind: int, policy_update: int) -> SchemaMismatchError:
    """The one of a step's two integers that no int64 holds."""
    try:
        integer(behaviour_kind, "behaviour_kind")
        integer(policy_update, "policy_update")
    except SchemaMismatchError as error:
        return misfit(line, error)
    raise RuntimeError("both integers fit an int64")  # unreachable from outside


def bad_step(
    line: Lane, code: int, *, ends: bool = False
) -> ActionOutOfBoundsError | NonFiniteError | SchemaMismatchError:
    """The error for what the step kernel found; call it before the rows are cleared."""
    column, out_of_bounds = line.plan.meaning(code)
    if column == "behaviour_kind":
        kinds = ", ".join(f"{kind.value} {kind.name.lower()}" for kind in BehaviourKind)
        return SchemaMismatchError(
            f"unknown behaviour_kind on lane {line.index}; give one of {kinds}"
        )
    if column == "behaviour" and out_of_bounds:
        return _bad_stdev(line)
    observed = column in {leaf.name for leaf in line.schema.observation}
    where = line.place
    value = "nan or inf"
    if column != "reward":
        value = repr(line.bound().arrays[column][line.row + observed].tolist())
    if out_of_bounds:
        space = next(leaf.space for leaf in line.schema.action if leaf.name == column)
        return ActionOutOfBoundsError(
            f"{column} {value} at {where} is outside {space}. Nothing of the step was stored; "
            "clip the action before env.step, and store what the environment received."
        )
    found = f"{column} is not finite ({value}) at {where}; nothing of the step was stored"
    if ends:
        return NonFiniteError(f"{found}, and the episode ends before it")
    if column in _OF_THE_POLICY:
        return NonFiniteError(
            f"{found}. It is the policy's: look at its weights, and whether the observation that "
            "it was given holds numbers beyond float32 (3.4e38)."
        )
    return NonFiniteError(
        f"{found}. To end such episodes before that step and go on, collect with "
        "--nonfinite=end_episode, train with --loop.nonfinite=end_episode, or in Python write with "
        "nonfinite='end_episode'; end(lane) keeps the steps before it."
    )


def _bad_stdev(line: Lane) -> SchemaMismatchError:
    behaviour = line.bound().arrays["behaviour"][line.row].tolist()
    stdevs = behaviour[len(behaviour) // 2 :]
    index = next(i for i, stdev in enumerate(stdevs) if stdev <= 0)
    return misfit(
        line,
        f"behaviour: the standard deviation of number {index} is {stdevs[index]} as a float32, and "
        "no Gaussian draw has a density then. Give the means and then the standard deviations, "
        "all above 0, or behaviour_kind 0 for unknown without a behaviour.",
    )


def no_column(schema: Schema, name: str, lane: int) -> SchemaMismatchError:
    """Policy numbers were given that this store has no column for."""
    spaces = ", ".join(repr(leaf.space) for leaf in schema.action)
    return SchemaMismatchError(
        f"{name} given on lane {lane}, but this store has no such column: its behaviour family "
        f"is {schema.behaviour_family!r} and its actions are {spaces}. Leave {name} out."
    )


def no_parameters(schema: Schema, kind: int, lane: int) -> SchemaMismatchError:
    """A parametric behaviour kind came without its numbers."""
    name = BehaviourKind(kind).name.lower()
    return SchemaMismatchError(
        f"behaviour_kind {name} on lane {lane} without its parameters; give behaviour as "
        f"{schema.behaviour_size} numbers, or behaviour_kind 0 for unknown"
    )
