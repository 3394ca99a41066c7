"""Where an update's tensors lie: in the host's memory, or on a device beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["HOST", "MirroredBlock", "arrays_of", "on_host"]

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


def on_host(tensors: Mapping[str, Tensor], names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Some tensors of one shape as arrays, by one copy where they lie on a device."""
    if tensors[names[0]].device.type == HOST.type:
        return {name: tensors[name].numpy() for name in names}
    rows = torch.stack([tensors[name] for name in names]).cpu().numpy()
    return dict(zip(names, rows, strict=True))


def arrays_of(tensors: Sequence[Tensor]) -> list[NDArray[Any]]:
    """Tensors of one dtype as arrays: their own memory on the host, else one copy of them all."""
    if all(tensor.device.type == HOST.type for tensor in tensors):
        return [tensor.detach().numpy() for tensor in tensors]
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).cpu()
    parts = torch.split(flat, [tensor.numel() for tensor in tensors])
    return [part.reshape(tensor.shape).numpy() for part, tensor in zip(parts, tensors, strict=True)]
