"""The causes, and from what amount on the simulator calls each abuse.

Where abuse begins follows from what the centre told (two million operations a job; twenty
submissions that add up; searches that fail 4 times for each that finds), and from what a server
and a client can do. Around it is nobody's land: whoever does so much is borderline.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

BORDERLINE = (0.8, 1.25)  # of the amount from which on it is abuse


class Cause(StrEnum):
    """Why somebody is a burden."""

    OPERATIONS = "too many operations"
    RATE = "sustained rate per node"
    HARM = "harm"
    FAILED = "failed look-ups"
    START_UP = "start-up storm"
    STATS = "stat storm"
    CHURN = "create/unlink churn"
    SMALL_READS = "small reads"
    SMALL_WRITES = "small writes"
    ABOVE_PEERS = "reads far above peers"
    LOCKS = "lock contention"
    OUTLIER = "outlier"
    IDLE = "idle processors beside heavy I/O"
    CAMPAIGN = "campaign"
    HOST = "host outside any job"
    UNATTRIBUTED = "unattributed share"


class Label(StrEnum):
    """What is to be expected of whoever judges a subject."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    BORDERLINE = "borderline"
    BAD_DATA = "bad-data"


@dataclass(frozen=True)
class Found:
    """A cause in a subject.

    Args:
        cause: which.
        ratio: its amount / the amount from which on it is abuse.
        onset: when that was reached, epoch seconds; None: never.
        amounts: what is truly done.
    """

    cause: Cause
    ratio: float
    onset: int | None
    amounts: dict[str, float]


def label(found: Iterable[Found]) -> Label:
    """Return the label of a subject whose data are good."""
    most = max((one.ratio for one in found), default=0.0)
    if most >= BORDERLINE[1]:
        return Label.POSITIVE
    return Label.BORDERLINE if most >= BORDERLINE[0] else Label.NEGATIVE
