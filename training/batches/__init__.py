"""Batches as tensors: from drawn rows to what losses are computed from."""
