"""The files of the demo, in the groups and the order in which they are loaded."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING

from django.core.management import call_command

from ioportal.demo.centre import ANALYSIS_CLUSTER, CLUSTER, MDS, NFS, PAST, TODAY, YEAR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_AT_ONCE = 100  # reads of counters per command
_FILE_COSTS_BYTES = 100_000  # the time of a file, apart from its size
_MONTH = re.compile(r"(20\d\d)-?(?:W(?P<week>\d\d)|(?P<month>\d\d))")


@dataclass(frozen=True)
class Step:
    """Files for one `ingest` command.

    Args:
        arguments: the format and its options.
        files: their paths.
    """

    arguments: tuple[str, ...]
    files: tuple[Path, ...]

    @property
    def cost(self) -> int:
        """Return the estimate of the time, in bytes."""
        return sum(file.stat().st_size + _FILE_COSTS_BYTES for file in self.files)

    def load(self) -> None:
        """Load the files; loaded ones are skipped."""
        call_command("ingest", *self.arguments, *map(str, self.files), stdout=io.StringIO())


def of_today() -> Iterator[Step]:
    """Yield the steps that load the hours before now."""
    for arguments, files in (
        (("pbs", "--cluster", CLUSTER), TODAY.glob("pbs/*")),
        (("sacct", "--cluster", ANALYSIS_CLUSTER), PAST.glob("sacct.txt")),
        (("squeue", "--cluster", ANALYSIS_CLUSTER), PAST.glob("squeue.txt")),
        (("panda", "--cluster", CLUSTER), TODAY.glob("panda/*")),
        (("rpctrace", "--server", MDS), PAST.glob("rpctrace/*")),
        (("md_stats",), PAST.glob("md_stats/*")),
        (("job_stats",), PAST.glob("job_stats/*")),
    ):
        if existing := tuple(sorted(files)):
            yield Step(arguments, existing)


def of_year() -> Iterator[Step]:
    """Yield the steps that load the past year, from its latest month to its first."""
    groups: list[tuple[str, int, tuple[str, ...], Path]] = []
    for order, (arguments, pattern) in enumerate(
        (
            (("alps", "--cluster", CLUSTER), "alps/*"),
            (("pbs", "--cluster", CLUSTER), "pbs/*"),
            (("sacct", "--cluster", ANALYSIS_CLUSTER), "sacct/*"),
            (("panda", "--cluster", CLUSTER), "panda/*"),
            (("rpctrace", "--server", MDS), "rpctrace/*"),
            (("md_stats",), "md_stats/*/*"),
            (("nfsd", "--server", NFS), "nfsd/*/*"),
            (("job_stats",), "job_stats/*/*"),
            (("pbs", "--cluster", CLUSTER), "late/*"),
        )
    ):
        groups += [(_month(file), -order, arguments, file) for file in YEAR.glob(pattern)]
    groups.sort(key=lambda group: (group[:2], group[3].name), reverse=True)
    for (_, _, arguments), members in groupby(groups, key=lambda group: group[:3]):
        files = sorted(file for *_, file in members)
        for part in _parts(arguments[0], files):
            yield Step(arguments, part)


def _parts(format_name: str, files: list[Path]) -> Iterator[tuple[Path, ...]]:
    """Divide reads of counters; traces repeat records of other files."""
    size = len(files) if format_name == "rpctrace" else _AT_ONCE
    for first in range(0, len(files), size):
        yield tuple(files[first : first + size])


def _month(file: Path) -> str:
    """Return the month in the name of a file; "": no date."""
    match = _MONTH.search(file.name)
    if match is None:
        return ""
    year = match[1]
    if match["week"]:
        monday = date.fromisocalendar(int(year), int(match["week"]), 1)
        return f"{monday:%Y%m}"
    return f"{year}{match['month']}"
