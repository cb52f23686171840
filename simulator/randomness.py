"""Chance that can be repeated: one independent stream per seed and purpose."""

import zlib

import numpy as np


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Return the generator of `purpose`; adding a purpose leaves the others' draws alone."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])
