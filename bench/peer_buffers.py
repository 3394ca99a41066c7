"""The replay buffers of installed peers behind one face, full of the same made-up transitions.

Each keeps the fields that ours gathers beside it: observation, action, reward, next observation
and how the step ended, in float32. What a peer calls these, and whether its endings are one column
or two, is its own affair. Priorities are kept to the power 0.6, weights are taken to the power 0.4,
normalised by the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Protocol

import gymnasium
import numpy as np

from bench.cheetah import ACTIONS, OBSERVATIONS
from bench.transitions import Floats32, Transitions

__all__ = ["PRIORITIZED", "UNIFORM", "Buffer", "Maker", "installed", "label"]

_ALPHA, _BETA = 0.6, 0.4
_BLOCK = 2**13
_LONGEST_REASON = 60


class Buffer(Protocol):
    """A full replay buffer."""

    def draw(self, size: int) -> Any:
        """A batch of all fields; of a prioritized buffer with its weights."""

    def update(self, drawn: Any, errors: Floats32) -> None:
        """Takes new |TD errors| of the steps of a batch; uniform buffers have no use for them."""

    def append(self) -> None:
        """Stores one more step, over the oldest one."""


class Maker(Protocol):
    """Makes a full buffer; ImportError says why a peer, or a part of it, is not to be had."""

    def __call__(self, transitions: Transitions) -> Buffer: ...


class _Uniform:
    """What uniform buffers have in common."""

    def update(self, drawn: Any, errors: Floats32) -> None:
        """Has no priorities."""


class _Cpprb(_Uniform):
    """Hands out dicts of numpy arrays."""

    def __init__(self, transitions: Transitions) -> None:
        observation, flag = {"shape": OBSERVATIONS}, {"dtype": np.bool_}
        columns: dict[str, Any] = {"obs": observation, "act": {"shape": ACTIONS}, "rew": {}}
        columns |= {"obs_next": observation, "terminated": flag, "truncated": flag}
        self._buffer = self._make(len(transitions), columns)
        for first in range(0, len(transitions), _BLOCK):
            block = slice(first, first + _BLOCK)
            self._buffer.add(**transitions.part(block), **self._priorities(transitions, block))
        self._step = transitions.part(0)

    def _make(self, count: int, columns: Mapping[str, Any]) -> Any:
        return import_module("cpprb").ReplayBuffer(count, columns)

    def _priorities(self, transitions: Transitions, block: slice) -> dict[str, Any]:
        return {}

    def draw(self, size: int) -> Any:
        return self._buffer.sample(size)

    def append(self) -> None:
        self._buffer.add(**self._step)


class _PrioritizedCpprb(_Cpprb):
    def _make(self, count: int, columns: Mapping[str, Any]) -> Any:
        return import_module("cpprb").PrioritizedReplayBuffer(count, columns, alpha=_ALPHA)

    def _priorities(self, transitions: Transitions, block: slice) -> dict[str, Any]:
        return {"priorities": transitions.priority[block]}

    def draw(self, size: int) -> Any:
        return self._buffer.sample(size, beta=_BETA)

    def update(self, drawn: Any, errors: Floats32) -> None:
        self._buffer.update_priorities(drawn["indexes"], errors)


class _Tianshou(_Uniform):
    """Hands out Batch objects of numpy arrays, and indices."""

    def __init__(self, transitions: Transitions) -> None:
        data = import_module("tianshou.data")
        count = len(transitions)
        self._buffer = self._make(data, count)
        self._step = data.Batch(**transitions.part(0), info={})
        for _ in range(2):  # the first one lays out the columns
            self._buffer.add(self._step)
        columns = self._buffer._meta
        for name, values in transitions.part(slice(None)).items():
            columns[name][:] = values
        columns.done[:] = transitions.truncated
        self._buffer._size = count

    def _make(self, data: Any, count: int) -> Any:
        return data.ReplayBuffer(count)

    def draw(self, size: int) -> Any:
        return self._buffer.sample(size)

    def append(self) -> None:
        self._buffer.add(self._step)


class _PrioritizedTianshou(_Tianshou):
    def __init__(self, transitions: Transitions) -> None:
        super().__init__(transitions)
        self._buffer.update_weight(np.arange(len(transitions)), transitions.priority)

    def _make(self, data: Any, count: int) -> Any:
        return data.PrioritizedReplayBuffer(count, alpha=_ALPHA, beta=_BETA)

    def update(self, drawn: Any, errors: Floats32) -> None:
        self._buffer.update_weight(drawn[1], errors)


class _TorchRL(_Uniform):
    """Hands out TensorDicts."""

    def __init__(self, transitions: Transitions) -> None:
        self._torch = import_module("torch")
        data = import_module("torchrl.data")
        count = len(transitions)
        self._buffer = self._make(data, data.LazyTensorStorage(count))
        columns = {
            name: self._torch.from_numpy(values)
            for name, values in transitions.part(slice(None)).items()
        }
        steps = import_module("tensordict").TensorDict(columns, batch_size=[count])
        self._buffer.extend(steps)
        self._step = steps[0].clone()

    def _make(self, data: Any, steps: Any) -> Any:
        return data.TensorDictReplayBuffer(storage=steps)

    def draw(self, size: int) -> Any:
        return self._buffer.sample(size)

    def append(self) -> None:
        self._buffer.add(self._step)


class _PrioritizedTorchRL(_TorchRL):
    def __init__(self, transitions: Transitions) -> None:
        import_module("torchrl._torchrl")  # the trees, compiled for one release of torch
        super().__init__(transitions)
        places = self._torch.arange(len(transitions))
        self._buffer.update_priority(places, self._torch.from_numpy(transitions.priority))

    def _make(self, data: Any, steps: Any) -> Any:
        return data.TensorDictPrioritizedReplayBuffer(
            alpha=_ALPHA, beta=_BETA, storage=steps, priority_key="td_error"
        )

    def update(self, drawn: Any, errors: Floats32) -> None:
        drawn["td_error"] = self._torch.from_numpy(errors)
        self._buffer.update_tensordict_priority(drawn)


class _StableBaselines3(_Uniform):
    """Hands out tuples of torch tensors; it has no prioritized buffer."""

    def __init__(self, transitions: Transitions) -> None:
        make = import_module("stable_baselines3.common.buffers").ReplayBuffer
        infinite: Any = np.inf
        spaces = (
            gymnasium.spaces.Box(-infinite, infinite, (OBSERVATIONS,), np.float32),
            gymnasium.spaces.Box(-1, 1, (ACTIONS,), np.float32),
        )
        self._buffer = make(
            len(transitions), *spaces, device="cpu", handle_timeout_termination=True
        )
        self._buffer.observations[:, 0] = transitions.observation
        self._buffer.next_observations[:, 0] = transitions.next_observation
        self._buffer.actions[:, 0] = transitions.action
        self._buffer.rewards[:, 0] = transitions.reward
        self._buffer.dones[:, 0] = self._buffer.timeouts[:, 0] = transitions.truncated
        self._buffer.full = True
        step = transitions.part(slice(0, 1))
        self._step = (step["obs"], step["obs_next"], step["act"], step["rew"], step["truncated"])

    def draw(self, size: int) -> Any:
        return self._buffer.sample(size)

    def append(self) -> None:
        self._buffer.add(*self._step, [{}])


PRIORITIZED: Final[dict[str, Maker]] = {
    "cpprb": _PrioritizedCpprb,
    "tianshou": _PrioritizedTianshou,
    "torchrl": _PrioritizedTorchRL,
}
UNIFORM: Final[dict[str, Maker]] = {
    "stable_baselines3": _StableBaselines3,
    "cpprb": _Cpprb,
    "tianshou": _Tianshou,
    "torchrl": _TorchRL,
}


def label(name: str) -> str:
    """A peer's name and version."""
    return f"{name} {version(name.replace('_', '-'))}"


def _reason(error: ImportError) -> str:
    """What went wrong, without the place of a file, and no more than a row of a table can take."""
    text = str(error)
    if error.path is not None:
        text = text.removeprefix(f"{error.path}: ")
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"


def installed(
    makers: Mapping[str, Maker], transitions: Transitions
) -> tuple[dict[str, Buffer], dict[str, str]]:
    """The buffers that can be made, by `label`; and why each of the others cannot."""
    buffers, left_out = {}, {}
    for name, make in makers.items():
        try:
            title = label(name)
            buffers[title] = make(transitions)
        except PackageNotFoundError:
            left_out[name] = "not installed"
        except ImportError as error:
            left_out[name] = f"does not load here: {_reason(error)}"
    return buffers, left_out
