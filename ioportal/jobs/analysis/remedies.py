"""Remedies for metadata load, ranked by how many of a user's own operations each concerns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHOWN = 3
MIN_SHARE = 0.1  # of all operations: rarer ones are not worth the user's time

_TEXTS = {  # what the operations are, and what to do
    "start-up": (
        "in the first five minutes of the jobs, when programs load their software",
        (
            "Keep software and its small files off Lustre: on a read-only NFS, on CVMFS, or in a "
            "container or squashfs image."
        ),
    ),
    "searches": (
        "opens without a close, as when programs search for files along their paths",
        (
            "Remove unused directories from PATH, LD_LIBRARY_PATH and PYTHONPATH, and search "
            "directories on Lustre last."
        ),
    ),
    "checks": (
        "checks of files (stat)",
        "Check for files less often, and do not list directories with ls -l in a loop.",
    ),
    "temporary files": (
        "files that were created and deleted again",
        "Write temporary files to a RAM disk such as /dev/shm.",
    ),
    "small files": (
        "opens of files that exist",
        (
            "Pack small files into archives, HDF5 or SQLite files, and keep files open instead of "
            "opening them again."
        ),
    ),
}


@dataclass(frozen=True)
class Remedy:
    """What a user can do, and which of the operations it concerns.

    Args:
        operations: how many metadata operations it concerns; one may count for several remedies.
        share: of all metadata operations.
        finding: what these operations are.
        text: what to do.
    """

    operations: float
    share: float
    finding: str
    text: str

    @property
    def percent(self) -> str:
        """The share in percent."""
        return f"{self.share:.0%}"


def ranked(
    counts: Mapping[str, float], startup: float | None, failed_opens: float | None
) -> list[Remedy]:
    """Return remedies, largest number of operations first.

    Args:
        counts: metadata operations by kind, as job_stats counts them.
        startup: operations in the first five minutes of the jobs; None: unknown.
        failed_opens: opens without a close; None: the servers do not count opens that fail.

    Returns:
        At most three; none if there were no operations.
    """
    total = sum(counts.values())
    remedies = [
        Remedy(operations, operations / total, finding, text)
        for operations, finding, text in _candidates(counts, startup or 0, failed_opens or 0)
        if total and operations / total >= MIN_SHARE
    ]
    return sorted(remedies, key=lambda remedy: -remedy.operations)[:_SHOWN]


def _candidates(
    counts: Mapping[str, float], startup: float, failed_opens: float
) -> Iterator[tuple[float, str, str]]:
    kinds: dict[str, float] = defaultdict(float, counts)
    operations = {
        "start-up": startup,
        "searches": failed_opens,
        "checks": kinds["getattr"],
        "temporary files": 2 * min(kinds["mknod"], kinds["unlink"]),
        "small files": kinds["open"] - failed_opens,
    }
    for name, (finding, text) in _TEXTS.items():
        yield operations[name], finding, text
