"""How the agent's memory is managed."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h numbers them
_KEPT_BYTES = 64 << 20
_LARGEST_KEPT_BYTES = 32 << 20


def keep_freed() -> None:
    """Keep what is freed for what is read next, up to a bound.

    glibc gives blocks as large as a chunk of text back to the kernel, chunk by chunk, and has every
    page of the next one made anew. Elsewhere nothing is done.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
