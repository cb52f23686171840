"""Memory management of the agent's process."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h numbers them
_RETAINED_BYTES = 64 << 20
_LARGEST_BLOCK_BYTES = 32 << 20


def retain_freed() -> None:
    """Retain freed memory for reuse, up to a bound.

    By default glibc returns blocks of a chunk's size to the kernel, and each new chunk costs page
    faults. Does nothing with other C libraries.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_TRIM_THRESHOLD, _RETAINED_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK_BYTES)
