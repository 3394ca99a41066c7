"""The errors of steps that a writer refuses, in words."""

from __future__ import annotations

from storage.errors import ActionOutOfBoundsError, NonFiniteError, SchemaMismatchError
from storage.lane import Lane
from storage.layout import BehaviourKind
from storage.schema import Schema

__all__ = ["bad_step", "no_column", "no_parameters"]


def bad_step(
    line: Lane, code: int
) -> ActionOutOfBoundsError | NonFiniteError | SchemaMismatchError:
    """The error for what the step kernel found; call it before the rows are cleared."""
    column, out_of_bounds = line.plan.meaning(code)
    if column == "behaviour_kind":
        kinds = ", ".join(f"{kind.value} {kind.name.lower()}" for kind in BehaviourKind)
        return SchemaMismatchError(
            f"unknown behaviour_kind on lane {line.index}; give one of {kinds}"
        )
    observed = column in {leaf.name for leaf in line.schema.observation}
    where = f"lane {line.index}, episode {line.lane_episode}, step {line.row - line.start}"
    value = "nan or inf"
    if column != "reward":
        value = repr(line.bound().arrays[column][line.row + observed].tolist())
    if out_of_bounds:
        space = next(leaf.space for leaf in line.schema.action if leaf.name == column)
        return ActionOutOfBoundsError(
            f"{column} {value} at {where} is outside {space}. Nothing of the step was stored; "
            "clip the action before env.step, and store what the environment received."
        )
    return NonFiniteError(
        f"{column} is not finite ({value}) at {where}; nothing of the step was stored. Call "
        "end(lane) to keep the steps before it, or write with nonfinite='end_episode'."
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
