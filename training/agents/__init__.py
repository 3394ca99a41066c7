"""The agents: each a Lightning module, its settings, networks and losses."""
