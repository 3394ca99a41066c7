"""Checkpoints: what they hold, how they are written, and what fits what."""
