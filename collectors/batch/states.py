"""Job states: a common vocabulary for all batch systems."""

import re
from collections.abc import Sequence

from collectors.batch.values import Unreadable, quoted

PENDING = "pending"
RUNNING = "running"
SUSPENDED = "suspended"
REQUEUED = "requeued"  # this run ended; the job continues in another record
COMPLETED = "completed"
FAILED = "failed"
CANCELLED = "cancelled"
TIMEOUT = "timeout"
NODE_FAIL = "node_fail"
PREEMPTED = "preempted"
OUT_OF_MEMORY = "out_of_memory"
UNKNOWN = "unknown"

STATES = (
    PENDING,
    RUNNING,
    SUSPENDED,
    REQUEUED,
    COMPLETED,
    FAILED,
    CANCELLED,
    TIMEOUT,
    NODE_FAIL,
    PREEMPTED,
    OUT_OF_MEMORY,
    UNKNOWN,
)
NOT_ENDED = frozenset({PENDING, RUNNING, SUSPENDED})

_SLURM = {
    "PENDING": PENDING,
    "REQUEUE_HOLD": PENDING,
    "REQUEUE_FED": PENDING,
    "RESV_DEL_HOLD": PENDING,
    "EXPEDITING": PENDING,
    "RUNNING": RUNNING,
    "CONFIGURING": RUNNING,  # allocated nodes are booting
    "COMPLETING": RUNNING,  # nodes are still allocated, and Slurm hides the final state
    "SIGNALING": RUNNING,
    "STAGE_OUT": RUNNING,
    "SUSPENDED": SUSPENDED,
    "STOPPED": SUSPENDED,
    "REQUEUED": REQUEUED,
    "SPECIAL_EXIT": REQUEUED,
    "RESIZING": REQUEUED,  # closes the record of the old size
    "COMPLETED": COMPLETED,
    "FAILED": FAILED,
    "LAUNCH_FAILED": FAILED,
    "RECONFIG_FAIL": FAILED,
    "CANCELLED": CANCELLED,
    "REVOKED": CANCELLED,
    "TIMEOUT": TIMEOUT,
    "DEADLINE": TIMEOUT,
    "NODE_FAIL": NODE_FAIL,
    "BOOT_FAIL": NODE_FAIL,
    "PREEMPTED": PREEMPTED,
    "OUT_OF_MEMORY": OUT_OF_MEMORY,
}
_SLURM_STATES = frozenset(  # without flags
    {
        "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT",
        "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
    }
)  # fmt: skip
_SLURM_WORD = re.compile(r"[A-Z_]+\+?|\?")

# Negative exit states come from the server. Down to -8 they are common to both servers; below, the
# meanings differ.
_PBS_COMMON = {-3: REQUEUED, -4: NODE_FAIL, -5: NODE_FAIL, -6: NODE_FAIL, -7: NODE_FAIL}
_OPENPBS = {
    -11: REQUEUED,
    -12: REQUEUED,
    -26: OUT_OF_MEMORY,
    -27: OUT_OF_MEMORY,
    -28: TIMEOUT,
    -29: TIMEOUT,
}
_TORQUE = {-10: OUT_OF_MEMORY, -11: TIMEOUT, -12: TIMEOUT}


def from_slurm(text: str) -> str:
    """Return the state for sacct's `text`.

    ``CANCELLED by 380693`` and words cut to the width of a column (``CANCELLED+``) are read. Words
    of later Slurm versions are "unknown".

    Raises:
        Unreadable: the text is not a state.

    Source: docs/formats.md, "sacct".
    """
    word = text.partition(" ")[0]
    if not _SLURM_WORD.fullmatch(word):
        raise Unreadable(f"state {quoted(text)} is not a word in capitals")
    if word.endswith("+"):
        meant = {state for name, state in _SLURM.items() if name.startswith(word[:-1])}
        return meant.pop() if len(meant) == 1 else UNKNOWN
    return _SLURM.get(word, UNKNOWN)


def sacct_state(words: Sequence[str]) -> str:
    """Return the word that sacct prints for a state and flags of Slurm's JSON.

    A flag that refines the state (``COMPLETING``) replaces it; other flags (``POWER_UP_NODE``) do
    not.
    """
    flags = (word for word in words if word in _SLURM and word not in _SLURM_STATES)
    return next(flags, words[0])


def from_pbs(exit_status: int | None, *, openpbs: bool, over_limit: bool) -> str:
    """Return the final state of a PBS or Torque job.

    Args:
        exit_status: as in the record; None: missing.
        openpbs: the record is from OpenPBS or PBS Pro, not from Torque: their numbers differ.
        over_limit: the job reached its wall time limit.

    Source: docs/formats.md, "PBS accounting".
    """
    if exit_status is None:
        return UNKNOWN
    if exit_status == 0:
        return COMPLETED
    if exit_status > 0:
        return TIMEOUT if over_limit else FAILED
    states_by_status = _PBS_COMMON | (_OPENPBS if openpbs else _TORQUE)
    return states_by_status.get(exit_status, FAILED)
