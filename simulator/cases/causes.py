"""The causes and their definitions of abuse.

The definitions follow from reports of the centre (two million operations per job; twenty
submissions with a large sum; 4 failed searches for each successful one), and from the capacity of
servers and clients. Amounts near a definition are borderline.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from simulator.clock import MINUTE_S

BORDERLINE = (0.8, 1.25)  # relative to the definition of abuse

# Definitions of abuse: amounts of one job, except for the last lines.
OPERATIONS = 2_000_000  # the submissions in the centre's complaint had far more
NODE_PER_S, NODE_WITHIN_S, NODE_OPERATIONS = 100, 10 * MINUTE_S, 150_000
FAILED_OPENS = 20_000  # failed look-ups; each start of a program repeats the search,
OPENS_PER_CLOSE = 2.5  # and most look-ups fail
AT_FIRST, AT_FIRST_S, AT_FIRST_NODES, AT_FIRST_SHARE = 150_000, 5 * MINUTE_S, 16, 0.7
STATS_PER_S, STATS_WITHIN_S, STATS_SHARE = 800, 5 * MINUTE_S, 0.6
FILES = 60_000  # created and removed
SMALL_REQUESTS, SMALL_BYTES = 500_000, 16_384
ABOVE_NAME, ABOVE_NAME_BYTES = 10, 50_000_000_000  # multiple of the median of the name
ABOVE_SIZE = 30  # multiple of the median per node of the size class
IDLE_BYTES, IDLE_OPERATIONS, IDLE_SHARE = 500_000_000_000, 250_000, 0.08
LOCKED_S = 100  # time of server threads, while its enqueues wait for each other
OTHERS_WAITING_S = 300  # additional waiting, while it takes a large part of the server's time:
HARMFUL_SHARE = 0.3  # with less, it is one of many sources of load
CAMPAIGN, SUBMISSIONS = 20_000_000, 20  # operations of one user's jobs
HOST_PER_S, HOST_WITHIN_S = 25, 5 * MINUTE_S  # requests to the small server
UNATTRIBUTED = 0.2  # of a server's requests


class Cause(StrEnum):
    """The reason why a subject is a burden."""

    OPERATIONS = "too many operations"
    RATE = "sustained rate per node"
    HARM = "harm"
    FAILED = "failed look-ups"
    START_UP = "start-up storm"
    STATS = "stat storm"
    CHURN = "create/unlink churn"
    SMALL_READS = "small reads"
    SMALL_WRITES = "small writes"
    ABOVE_PEERS = "reads far above similar jobs"
    LOCKS = "lock contention"
    OUTLIER = "outlier"
    IDLE = "idle processors with heavy I/O"
    CAMPAIGN = "campaign"
    HOST = "host outside any job"
    UNATTRIBUTED = "unattributed share"


class Label(StrEnum):
    """The expected result of an evaluation."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    BORDERLINE = "borderline"
    BAD_DATA = "bad-data"


@dataclass(frozen=True)
class Occurrence:
    """A cause in a subject.

    Args:
        cause: the cause.
        ratio: amount / definition of abuse.
        onset: time when the definition was reached, epoch seconds; None: never.
        amounts: true amounts.
    """

    cause: Cause
    ratio: float
    onset: int | None
    amounts: dict[str, float]


def label(occurrences: Iterable[Occurrence]) -> Label:
    """Return the label of a subject with good data."""
    highest = max((occurrence.ratio for occurrence in occurrences), default=0.0)
    if highest >= BORDERLINE[1]:
        return Label.POSITIVE
    return Label.BORDERLINE if highest >= BORDERLINE[0] else Label.NEGATIVE
