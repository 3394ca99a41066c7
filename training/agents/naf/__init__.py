"""NAF: a value and a quadratic advantage around the policy's mean (Gu et al., 2016)."""
