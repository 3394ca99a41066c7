"""State as tensors and Python scalars only, so that ``torch.load(weights_only=True)`` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from storage.errors import CheckpointError

__all__ = ["as_arrays", "as_tensors"]

_BITS = {np.dtype("u2"): np.int16, np.dtype("u4"): np.int32, np.dtype("u8"): np.int64}
"""Unsigned types that torch handles poorly travel as signed ones of the same bits."""


def as_tensors(state: Any) -> Any:
    """The nested state with NumPy arrays copied to tensors and NumPy scalars made plain.

    Raises:
        CheckpointError: something that is neither an array nor a plain value.
    """
    if isinstance(state, Mapping):
        return {str(key): as_tensors(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [as_tensors(value) for value in state]
    if isinstance(state, np.ndarray):
        return {_ARRAY: state.dtype.str, "data": _tensor(state)}
    if isinstance(state, np.generic):
        return state.item()
    if state is None or isinstance(state, bool | int | float | str | torch.Tensor):
        return state
    raise CheckpointError(
        f"a {type(state).__name__} cannot be kept in a checkpoint; state is made of arrays, "
        "tensors, numbers and text"
    )


def as_arrays(state: Any) -> Any:
    """The nested state that :func:`as_tensors` converted, with its arrays back."""
    if isinstance(state, Mapping):
        if _ARRAY in state:
            return state["data"].numpy().view(np.dtype(state[_ARRAY])).copy()
        return {key: as_arrays(value) for key, value in state.items()}
    if isinstance(state, list):
        return [as_arrays(value) for value in state]
    return state


_ARRAY = "__array__"


def _tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    array = np.array(array, order="C")
    return torch.from_numpy(array.view(_BITS.get(array.dtype, array.dtype)))
