"""V-RACER: value and policy in one network, learnt from V-trace targets (ReF-ER, section 4)."""
