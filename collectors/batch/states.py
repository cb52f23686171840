"""How far a job came: one vocabulary for every batch system."""

import re
from collections.abc import Sequence

from collectors.batch.values import Unreadable, shown

PENDING = "pending"
RUNNING = "running"
SUSPENDED = "suspended"
REQUEUED = "requeued"  # this run is over, and the job goes on in another record
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
    "CONFIGURING": RUNNING,  # its nodes are held and booting
    "COMPLETING": RUNNING,  # its nodes are held still, and Slurm hides how it ended
    "SIGNALING": RUNNING,
    "STAGE_OUT": RUNNING,
    "SUSPENDED": SUSPENDED,
    "STOPPED": SUSPENDED,
    "REQUEUED": REQUEUED,
    "SPECIAL_EXIT": REQUEUED,
    "RESIZING": REQUEUED,  # the record of the old size, closed
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

# Negative exit states are the server's own verdicts. Those down to -8 are common to both servers;
# below, the same number means different things.
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


def of_slurm(text: str) -> str:
    """Return the state that sacct prints as `text`.

    ``CANCELLED by 380693`` and words cut to a column's width (``CANCELLED+``) are understood; a
    word that a later Slurm adds is "unknown".

    Raises:
        Unreadable: it is not a state at all.

    Source: docs/formats.md, "sacct".
    """
    word = text.partition(" ")[0]
    if not _SLURM_WORD.fullmatch(word):
        raise Unreadable(f"state {shown(text)} is not a word in capitals")
    if word.endswith("+"):
        meant = {state for name, state in _SLURM.items() if name.startswith(word[:-1])}
        return meant.pop() if len(meant) == 1 else UNKNOWN
    return _SLURM.get(word, UNKNOWN)


def one_of_slurm(words: Sequence[str]) -> str:
    """Return of a state and its flags, as Slurm's JSON lists them, the one that sacct prints.

    A flag that says more (``COMPLETING``) stands for the state; one that says nothing of the state
    (``POWER_UP_NODE``) does not.
    """
    flags = (word for word in words if word in _SLURM and word not in _SLURM_STATES)
    return next(flags, words[0])


def of_pbs(exit_status: int | None, *, openpbs: bool, over_limit: bool) -> str:
    """Return how a PBS or Torque job ended.

    Args:
        exit_status: as in the record; None: the record has none.
        openpbs: whether OpenPBS or PBS Pro wrote the record, not Torque: their numbers differ.
        over_limit: whether the job used all the wall time it had asked for.

    Source: docs/formats.md, "PBS accounting".
    """
    if exit_status is None:
        return UNKNOWN
    if exit_status == 0:
        return COMPLETED
    if exit_status > 0:
        return TIMEOUT if over_limit else FAILED
    verdicts = _PBS_COMMON | (_OPENPBS if openpbs else _TORQUE)
    return verdicts.get(exit_status, FAILED)
