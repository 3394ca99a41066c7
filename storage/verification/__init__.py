"""Verification: what is wrong with a store, found without changing a byte of it."""

from __future__ import annotations

from storage.verification.findings import Finding, Report
from storage.verification.verify import verify

__all__ = ["Finding", "Report", "verify"]
