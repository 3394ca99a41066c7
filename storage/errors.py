"""Every error that Sharpwave raises on purpose.

Each class has a builtin as its second parent, so that callers may catch either. A message says
what is wrong, where, and what to do about it, with the offending values.
"""

from __future__ import annotations

__all__ = [
    "ActionOutOfBoundsError",
    "CheckpointError",
    "ConfigError",
    "CorruptStoreError",
    "DeviceError",
    "DiskFullError",
    "DivergenceError",
    "EmptyViewError",
    "EnvironmentFaultError",
    "EnvironmentNotFoundError",
    "FeedbackError",
    "FormatVersionError",
    "MapLimitError",
    "NonFiniteError",
    "NotReadableError",
    "OverlayInUseError",
    "ReadOnlyStoreError",
    "SamplingError",
    "SchemaMismatchError",
    "SegmentLockedError",
    "SharpwaveError",
    "StoreExistsError",
    "StoreNotFoundError",
    "UnsupportedSpaceError",
    "WriterStateError",
]


class SharpwaveError(Exception):
    """Base of all errors below; the command line prints it as one line, without a traceback."""


class StoreNotFoundError(SharpwaveError, FileNotFoundError):
    """The path holds no store."""


class StoreExistsError(SharpwaveError, FileExistsError):
    """A new store was asked for where something already is."""


class FormatVersionError(SharpwaveError, ValueError):
    """The store was written by a newer format than this release reads."""


class CorruptStoreError(SharpwaveError, ValueError):
    """Bytes on disk contradict the commit log or the format."""


class SegmentLockedError(SharpwaveError, RuntimeError):
    """Another live writer holds the segment."""


class OverlayInUseError(SharpwaveError, RuntimeError):
    """Another live view writes the overlay."""


class NotReadableError(SharpwaveError, OSError):
    """A part of the store may not be read, or cannot be for want of descriptors or memory.

    Nobody knows whether it is damaged.
    """


class ReadOnlyStoreError(SharpwaveError, PermissionError):
    """A write was asked of a store that was opened for reading."""


class DeviceError(SharpwaveError, OSError):
    """The device did not take what was written: nobody knows what of it is there."""


class DivergenceError(SharpwaveError, ArithmeticError):
    """Learning has left the numbers: a loss, a gradient or weights are NaN or beyond all bounds."""


class DiskFullError(SharpwaveError, OSError):
    """No room for the next step of a file; nothing committed was touched."""


class MapLimitError(SharpwaveError, OSError):
    """The system gives this process no more memory maps."""


class UnsupportedSpaceError(SharpwaveError, TypeError):
    """A gymnasium space that has no column layout."""


class SchemaMismatchError(SharpwaveError, ValueError):
    """A value, store or checkpoint does not fit the schema."""


class NonFiniteError(SharpwaveError, ValueError):
    """NaN or infinity in an observation, reward, action or feed-back value."""


class ActionOutOfBoundsError(SharpwaveError, ValueError):
    """A foreign policy returned an action outside the action space."""


class WriterStateError(SharpwaveError, RuntimeError):
    """A writer was called out of order (a step before begin, a lane that does not exist)."""


class EmptyViewError(SharpwaveError, RuntimeError):
    """A replay view holds too few steps for what was asked."""


class SamplingError(SharpwaveError, ValueError):
    """A batch size, window or scheme that cannot be sampled."""


class FeedbackError(SharpwaveError, ValueError):
    """Feed-back of a wrong length, dtype or value; nothing was changed."""


class ConfigError(SharpwaveError, ValueError):
    """A setting that does not exist or has an impossible value."""


class EnvironmentNotFoundError(SharpwaveError, LookupError):
    """No environment of that name."""


class EnvironmentFaultError(SharpwaveError, RuntimeError):
    """An environment raised an error while it acted, or broke gymnasium's contract."""

    lane: int | None = None
    """Its lane; None where lanes step together."""


class CheckpointError(SharpwaveError, ValueError):
    """A checkpoint that is missing, unreadable or made for something else."""
