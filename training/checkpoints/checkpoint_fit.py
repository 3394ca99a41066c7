"""Whether a checkpoint has all that this run needs to go on from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from storage.errors import CheckpointError
from training.checkpoints.checkpoint_file import AGENT_KEY
from training.checkpoints.checkpoint_structure import check_resumable, check_structure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storage import EnvironmentSpec

__all__ = [
    "check_agent",
    "check_environment",
    "check_loops",
    "check_optimizer",
    "check_whole",
]

_MOMENTS: Final = ("exp_avg", "exp_avg_sq")
_REMEDY: Final = "use a whole checkpoint of this run, such as the previous one"


def check_whole(content: Mapping[str, Any], experience: str, where: str) -> None:
    """Refuses what training cannot go on from.

    Args:
        content: A checkpoint's, however it was read.
        experience: Name of the class that the run learns from.
        where: The checkpoint, in words.

    Raises:
        CheckpointError: naming what is missing or wrong.
    """
    problem = check_structure(content) or check_resumable(content, experience)
    if problem is not None:
        raise CheckpointError(f"training cannot go on from {where}: {problem}; {_REMEDY}")


def check_optimizer(
    states: Sequence[Mapping[str, Any]], own: torch.optim.Optimizer, where: str
) -> None:
    """Refuses the state of another optimizer, and moments of other shapes than the parameters.

    Engines work on their memory; they are Adam's, or those that the optimizer's ``moments`` names.

    Raises:
        CheckpointError: naming the option, or the parameter's number, and what is wrong.
    """
    kept = states[0]
    parameters = [parameter for group in own.param_groups for parameter in group["params"]]
    _check_groups(kept["param_groups"], own.state_dict()["param_groups"], where)
    numbers = range(len(parameters))
    counted, names = not hasattr(own, "moments"), getattr(own, "moments", _MOMENTS)
    for number, state in kept["state"].items():
        problem = _moments_problem(state, names, parameters[number] if number in numbers else None)
        if counted and problem is None:
            problem = _count_problem(state)
        if problem is not None:
            raise CheckpointError(
                f"{where} has an impossible optimizer state of parameter {number} ({problem}); "
                f"{_REMEDY}"
            )


def check_agent(
    content: Mapping[str, Any],
    kind: str,
    spec: EnvironmentSpec,
    parameters: Mapping[str, torch.Tensor],
    where: str,
) -> Mapping[str, Any]:
    """What a checkpoint keeps of its agent, once that fits the agent that goes on from it.

    Args:
        content: A checkpoint's.
        kind: Of the agent that goes on.
        spec: Its environment.
        parameters: Its own, by name.
        where: The checkpoint, in words.

    Raises:
        CheckpointError: no agent's, another agent's, for other spaces, or of another network.
    """
    if AGENT_KEY not in content:
        raise CheckpointError(f"{where} holds no Sharpwave agent")
    kept: Mapping[str, Any] = content[AGENT_KEY]
    named = kept["config"]["agent"]["kind"]
    if named != kind:
        raise CheckpointError(f"{where} is of agent {named}, this run trains {kind}")
    check_environment(kept["environment"], spec, where)
    _check_parameters(content["state_dict"], parameters, where)
    return kept


def check_environment(kept: Mapping[str, Any], spec: EnvironmentSpec, where: str) -> None:
    """Refuses a checkpoint made for other spaces.

    Raises:
        CheckpointError: naming the space and both descriptions.
    """
    described = spec.to_json()
    for name in ("observation_space", "action_space"):
        if kept[name] != described[name]:
            raise CheckpointError(
                f"{where} was made for {kept['id']} with {name} {kept[name]}, but {spec.id} has "
                f"{described[name]}; use a checkpoint of the same environment"
            )


def _check_parameters(
    kept: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor], where: str
) -> None:
    """Refuses a checkpoint of a network of another shape.

    Raises:
        CheckpointError: naming the parameters that differ, their shapes and dtypes.
    """
    shapes = [{name: _looks(each) for name, each in state.items()} for state in (kept, own)]
    names = sorted(shapes[0].keys() | shapes[1].keys())
    differing = [name for name in names if shapes[0].get(name) != shapes[1].get(name)]
    if differing:
        listed = ", ".join(
            f"{name} {shapes[0].get(name, 'absent')} against {shapes[1].get(name, 'absent')}"
            for name in differing
        )
        raise CheckpointError(
            f"{where} holds another network: {listed}; keep the agent's settings as they were"
        )


def _check_groups(
    kept: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]], where: str
) -> None:
    """Refuses options of other kinds than the optimizer's, and other numbers of parameters."""
    if [group["params"] for group in kept] != [group["params"] for group in own]:
        raise CheckpointError(
            f"{where} has the optimizer state of other parameters than the network's; {_REMEDY}"
        )
    for group, expected in zip(kept, own, strict=True):
        for name, value in expected.items():
            if name not in group or not _alike(group[name], value):
                raise CheckpointError(
                    f"{where} has the optimizer's {name} {group.get(name)!r:.60}, where a value "
                    f"such as {value!r:.60} belongs; {_REMEDY}"
                )


def _alike(kept: Any, own: Any) -> bool:
    """Whether two options are of one kind; engines switch between None and a boolean."""
    if own is None or isinstance(own, bool):
        return kept is None or isinstance(kept, bool)
    if isinstance(own, float):
        return isinstance(kept, float) and kept >= 0
    return bool(type(kept) is type(own) and kept == own)


def _moments_problem(
    state: Mapping[str, torch.Tensor], names: Sequence[str], parameter: torch.Tensor | None
) -> str | None:
    """What is wrong with a parameter's state; of ``names`` the last one holds squares."""
    if parameter is None:
        return "there is no such parameter"
    for name in names:
        moment = state.get(name)
        if moment is None or moment.shape != parameter.shape or moment.dtype != parameter.dtype:
            return f"{name} does not look like the parameter"
    return "a negative square" if bool((state[names[-1]] < 0).any()) else None


def _count_problem(state: Mapping[str, torch.Tensor]) -> str | None:
    step = state.get("step")
    bad = step is None or step.shape != () or not float(step) >= 0
    return "no number of steps" if bad else None


def check_loops(kept: Mapping[str, Any], own: Mapping[str, Any], where: str) -> None:
    """Refuses Lightning's counters when one is missing or no count.

    Raises:
        CheckpointError: naming the counter.
    """
    problem = _counter_problem(kept, own, "loops")
    if problem is not None:
        raise CheckpointError(f"training cannot go on from {where}: {problem}; {_REMEDY}")


def _counter_problem(kept: Any, own: Any, place: str) -> str | None:
    if not isinstance(own, dict):
        same = type(kept) is type(own) and not (isinstance(kept, int) and not 0 <= kept < 2**62)
        return None if same else f"{place} is {kept!r}, no count"
    if not isinstance(kept, dict):
        return f"{place} is {kept!r}, no counters"
    for name, value in own.items():
        if name not in kept:
            return f"it lacks {place}.{name}"
        problem = _counter_problem(kept[name], value, f"{place}.{name}")
        if problem is not None:
            return problem
    return None


def _looks(tensor: torch.Tensor) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    return f"{tuple(tensor.shape)}" if name == "float32" else f"{name} {tuple(tensor.shape)}"
