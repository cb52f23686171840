"""What servers count as an open, by version: figures across an upgrade cannot be compared.

Source: docs/formats.md, "job_stats".
"""

from __future__ import annotations

import re
from enum import Enum, auto

from ioportal.core.units import Source
from ioportal.metrics import BY_NAME

_VERSION = re.compile(r"(\d+)\.(\d+)")
FAILURES_COUNTED_UNTIL, _FOUND_UNTIL = (2, 13), (2, 15)
# Figures from job_stats without opens.
_WITHOUT_OPENS = {"closes", "largest_target_share"}


class OpenMeaning(Enum):
    """What the counter `open` of a server counts."""

    ALL = auto()  # failures too, up to 2.13
    FOUND = auto()  # no failed look-ups, 2.14 and 2.15
    SUCCESSES = auto()  # from 2.16


def open_meaning(version: str) -> OpenMeaning | None:
    """Return what a server of a Lustre version counts; None: the version is unknown."""
    numbers = _VERSION.match(version)
    if numbers is None:
        return None
    known = tuple(map(int, numbers.groups()))
    if known <= FAILURES_COUNTED_UNTIL:
        return OpenMeaning.ALL
    return OpenMeaning.FOUND if known <= _FOUND_UNTIL else OpenMeaning.SUCCESSES


def counts_opens(name: str) -> bool:
    """Return whether a figure includes opens: a metric, or a measure of a rule about operations."""
    if name in _WITHOUT_OPENS:
        return False
    metric = BY_NAME.get(name)
    if metric is None:
        return "operations" in name or "opens" in name
    return metric.source is Source.JOB_STATS_MDT
