"""DDPG: a deterministic actor that climbs a critic's action values (ReF-ER, section 2)."""
