"""Policies: from an observation to an action, and what is stored of how it was drawn."""
