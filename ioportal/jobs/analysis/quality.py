"""Data quality of a job's figures, with reasons."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor

GOOD_COVERED = 0.95
GOOD_AMBIGUOUS = 0.05
PARTIAL_COVERED = 0.5
PARTIAL_AMBIGUOUS = 0.25
CONTRADICTION = 2  # operations with a job's id / operations of its nodes, or its inverse
MIN_NOT_SENT = 1_000  # operations: smaller differences are from polls at different times


class Grade(StrEnum):
    """Grade of data quality, from reliable to merely indicative figures."""

    GOOD = "good"
    PARTIAL = "partial"
    POOR = "poor"


@dataclass(frozen=True)
class Quality:
    """A grade and its reasons; without reasons if good."""

    grade: Grade
    reasons: tuple[str, ...]


def grade(covered: float, ambiguous: float, contradicted: float, resets: int) -> Quality:
    """Grade the data quality of a job.

    Args:
        covered: share of the run with observed counters of the job's metadata targets, 0 to 1.
        ambiguous: share of the job's operations that may belong to another job, 0 to 1.
        contradicted: share of operations whose job id and node, or user id, disagree, 0 to 1: of
            the RPCs that claim the job, unless counters have a user id, of those from its nodes,
            or of the counted operations that its nodes did not send.
        resets: number of windows in which the MDTs' counters were cleared, or an MDS restarted.

    Returns:
        Good if covered >= 95 %, ambiguous + contradicted <= 5 % and resets = 0; partial if
        covered >= 50 % and ambiguous + contradicted <= 25 %; otherwise poor.

    Source: docs/metrics.md, "Quality".
    """
    reasons = []
    if covered < GOOD_COVERED:
        share = f"observed in {floor(100 * covered)} % of its run"
        never = "never observed while it ran: operations are known from reads far apart, if at all"
        reasons.append(f"The metadata targets' counters were {share if covered else never}.")
    if ambiguous + contradicted > GOOD_AMBIGUOUS and ambiguous:
        reasons.append(f"{ceil(100 * ambiguous)} % of its operations may be another job's.")
    if ambiguous + contradicted > GOOD_AMBIGUOUS and contradicted:
        reasons.append(
            f"{ceil(100 * contradicted)} % of the operations with its job id or from its nodes are "
            "contradicted: the node or user is not that of the job id. Counters may include "
            "another's operations."
        )
    if resets:
        reasons.append(f"Counters were {_cleared(resets)}: operations may be missing.")
    if not reasons:
        return Quality(Grade.GOOD, ())
    usable = covered >= PARTIAL_COVERED and ambiguous + contradicted <= PARTIAL_AMBIGUOUS
    return Quality(Grade.PARTIAL if usable else Grade.POOR, tuple(reasons))


def grade_bytes(
    osts: int, covered: float, resets: int, *, is_counted: bool
) -> tuple[Grade | None, tuple[str, ...]]:
    """Grade the data quality of a job's bytes.

    Args:
        osts: number of registered OSTs of the job's filesystems.
        covered: share of the run with observed counters, mean of the OSTs, 0 to 1.
        resets: number of windows in which the OSTs' counters were cleared, or an OSS restarted.
        is_counted: whether any OST counted the job, even between distant reads.

    Returns:
        A grade and its reasons. The grade is None if bytes are unknown: no OST is registered, or
        none was observed. Otherwise good if covered >= 95 % and resets = 0, partial if covered >=
        50 %, else poor.

    Source: docs/metrics.md, "Quality".
    """
    if not osts:
        return (None, ("Bytes are unknown: no OST of its filesystems is registered.",))
    if not covered and not is_counted:
        return (None, ("Bytes are unknown: no OST was observed while it ran.",))
    reasons = []
    if covered < GOOD_COVERED:
        share = f"observed in {floor(100 * covered)} % of its run, on average"
        reasons.append(f"The OSTs' counters were {share}: bytes may be missing.")
    if resets:
        reasons.append(f"The OSTs' counters were {_cleared(resets)}: bytes may be missing.")
    if not reasons:
        return (Grade.GOOD, ())
    return (Grade.PARTIAL if covered >= PARTIAL_COVERED else Grade.POOR, tuple(reasons))


def _cleared(resets: int) -> str:
    return f"cleared or restarted {'once' if resets == 1 else f'{resets} times'}"
