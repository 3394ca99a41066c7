"""How a store records what an environment shows, found by looking at the environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import gymnasium
from gymnasium import wrappers

from storage.spaces import flatten_space, is_box

if TYPE_CHECKING:
    from storage.schema import StackPadding

__all__ = ["Recording", "recording"]

_TRANSPARENT: Final = (
    gymnasium.ActionWrapper,
    gymnasium.RewardWrapper,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.TimeLimit,
)
"""Wrappers that show the observations of what they wrap."""
_PADDINGS: Final[dict[str, StackPadding]] = {"reset": "repeat", "zero": "zero"}
"""What `gymnasium.wrappers.FrameStackObservation` and stores call the same paddings."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What `storage.create` is told of an environment besides its spaces."""

    frame_stack: int | None = None
    """Frames that each observation stacks on its first axis, of which a row keeps the newest."""
    first_stack_padding: StackPadding | None = None
    """What stands before an episode's first frame."""
    life_loss: bool = False
    """Whether steps that lost a life are marked; ``info["lives"]`` says how many are left."""


def recording(env: gymnasium.Env[Any, Any]) -> Recording:
    """How a store records ``env``.

    An environment may declare a `Recording` as its attribute ``recording``. Stacks are kept a frame
    a row where the outermost wrapper that touches observations is gymnasium's
    ``FrameStackObservation`` over arrays, padded with zeros or the first frame. Observations of any
    other kind are kept whole.
    """
    shown: Any = env
    while isinstance(shown, _TRANSPARENT):
        shown = shown.env
    declared = getattr(env.unwrapped, "recording", None)
    base = declared if isinstance(declared, Recording) else Recording()
    if shown is env.unwrapped:
        return base
    if isinstance(shown, wrappers.FrameStackObservation) and _stacks_arrays(shown):
        padding = _PADDINGS[shown.padding_type]
        return Recording(int(shown.stack_size), padding, base.life_loss)
    return Recording(life_loss=base.life_loss)


def _stacks_arrays(stacked: wrappers.FrameStackObservation[Any, Any, Any]) -> bool:
    leaves = flatten_space(stacked.env.observation_space, "observation")
    return stacked.padding_type in _PADDINGS and all(map(is_box, leaves))
