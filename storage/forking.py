"""What a child that was forked must let go of: it owns nothing of what its parent holds."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["disown_in_children"]


class _Owner(Protocol):
    def disown(self) -> None:
        """Let go of everything without a trace; called in the child, right after the fork."""


_owners: WeakSet[_Owner] = WeakSet()


def disown_in_children(owner: _Owner) -> None:
    """Have children call ``owner.disown()``, as long as anybody refers to the owner."""
    _owners.add(owner)


def _disown_all() -> None:
    for owner in list(_owners):
        owner.disown()
    _owners.clear()


os.register_at_fork(after_in_child=_disown_all)
