"""The causes, and from what amount on the simulator calls each abuse.

Where abuse begins follows from what the centre told (two million operations a job; twenty
submissions that add up; searches that fail 4 times for each that finds), and from what a server
and a client can do. Around it is nobody's land: whoever does so much is borderline.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from simulator.clock import MINUTE_S

BORDERLINE = (0.8, 1.25)  # of the amount from which on it is abuse

# From here on it is abuse: amounts of one job, but for the last ones.
OPERATIONS = 2_000_000  # by far, in the submissions that the centre complained of
NODE_PER_S, NODE_WITHIN_S, NODE_OPERATIONS = 100, 10 * MINUTE_S, 150_000
FAILED_OPENS = 20_000  # look-ups that find nothing; each start of a program searches anew,
OPENS_PER_CLOSE = 2.5  # and finds nothing more often than something
AT_FIRST, AT_FIRST_S, AT_FIRST_NODES, AT_FIRST_SHARE = 150_000, 5 * MINUTE_S, 16, 0.7
STATS_PER_S, STATS_WITHIN_S, STATS_SHARE = 800, 5 * MINUTE_S, 0.6
FILES = 60_000  # that come and go
SMALL_REQUESTS, SMALL_BYTES = 500_000, 16_384
ABOVE_NAME, ABOVE_NAME_BYTES = 10, 50_000_000_000  # times what the middle job of the name reads
ABOVE_SIZE = 30  # times what a node of the middle job of the size does
IDLE_BYTES, IDLE_OPERATIONS, IDLE_SHARE = 500_000_000_000, 250_000, 0.08
LOCKED_S = 100  # of server threads, while its enqueues wait for each other
OTHERS_WAITING_S = 300  # because of it, while it takes a good part of the server's time:
HARMFUL_SHARE = 0.3  # with less it is among those that wait, of whom any would be one too many
CAMPAIGN, SUBMISSIONS = 20_000_000, 20  # operations of one user's jobs
HOST_PER_S, HOST_WITHIN_S = 25, 5 * MINUTE_S  # requests to the small server
UNATTRIBUTED = 0.2  # of a server's requests


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
