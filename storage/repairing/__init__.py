"""Repair: damage goes to quarantine, and everything else of a store reads on."""

from __future__ import annotations

from storage.repairing.actions import Action, RepairReport
from storage.repairing.repair import repair

__all__ = ["Action", "RepairReport", "repair"]
