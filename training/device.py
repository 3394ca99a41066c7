"""Where an update's tensors lie: in the host's memory, or on a device beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["HOST", "HostReader", "MirroredBlock", "arrays_of"]

HOST: Final = torch.device("cpu")


class MirroredBlock:
    """Float32 numbers that the host writes and a device reads.

    On the host both are the same memory. For another device the host's side is pinned and `send`
    copies it without waiting: it must not be written again before the device has used the copy,
    as it has once anything computed from it was read back.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        away = device.type != HOST.type
        self.host = torch.zeros(size, pin_memory=away)
        self.there = self.host.to(device) if away else self.host

    def send(self) -> None:
        """Bring what the host has written to the device."""
        if self.there is not self.host:
            self.there.copy_(self.host, non_blocking=True)


class HostReader:
    """Reads some tensors of one shape, by one copy where they lie on a device.

    On the host it gives their own memory, and gives the same arrays as long as the first tensor is
    the same object: an engine that reuses one of its tensors reuses all of them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._first: Tensor | None = None
        self._arrays: dict[str, NDArray[np.float32]] = {}

    def __call__(self, tensors: Mapping[str, Tensor]) -> dict[str, NDArray[np.float32]]:
        """Arrays by name."""
        names, first = self._names, tensors[self._names[0]]
        if first is self._first:
            return self._arrays
        if first.device.type != HOST.type:
            rows = torch.stack([tensors[name] for name in names]).cpu().numpy()
            return dict(zip(names, rows, strict=True))
        self._first = first
        self._arrays = {name: tensors[name].numpy() for name in names}
        return self._arrays


def arrays_of(tensors: Sequence[Tensor]) -> list[NDArray[Any]]:
    """Tensors of one dtype as arrays: their own memory on the host, else one copy of them all."""
    if all(tensor.device.type == HOST.type for tensor in tensors):
        return [tensor.detach().numpy() for tensor in tensors]
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).cpu()
    parts = torch.split(flat, [tensor.numel() for tensor in tensors])
    return [part.reshape(tensor.shape).numpy() for part, tensor in zip(parts, tensors, strict=True)]
