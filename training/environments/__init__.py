"""Environments as the loop sees them: by name, in lanes, and Atari games."""
