"""Load of filesystems and NFS servers in several periods: did load move elsewhere?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
from django.db import connection
from django.utils.text import capfirst

from collectors.nfs.nfsd import METADATA_COUNTERS
from ioportal.core import formatting, ratios
from ioportal.jobs.cache import cached, statistics_version
from ioportal.site.models import Counter, Filesystem, Server
from ioportal.telemetry import services
from ioportal.telemetry.models import IoWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    Period: TypeAlias = tuple[datetime, datetime]

_MAX_READS = 400  # of a server: a year by day

# Only intervals between two polls inside of the range count. An interval has a row per basis. Each
# MDT has its own polls, so rates are added up, not operations.
_FILESYSTEMS = """
SELECT filesystem_id, sum(operations / seconds), sum(operations), max(seconds)
FROM (
    SELECT filesystem_id, target_id, sum(operations)::float8 AS operations,
        extract(epoch FROM sum("end" - start))::float8 AS seconds
    FROM (
        SELECT filesystem_id, target_id, start, "end", sum(metadata_operations) AS operations
        FROM telemetry_iototal
        WHERE start >= %(start)s AND "end" <= %(end)s AND start < %(end)s AND target_id <> 0
            AND basis <> %(TOTAL)s
        GROUP BY 1, 2, 3, 4
    ) intervals
    GROUP BY 1, 2
) targets
WHERE seconds > 0
GROUP BY 1
"""


@dataclass(frozen=True)
class Load:
    """Metadata operations of a filesystem or an NFS server in a range.

    MDTs count the operations of filesystems by job id; NFS servers count all clients' operations.

    Args:
        name: of the filesystem or server.
        kind: "filesystem" or "NFS server".
        rate: metadata operations per observed second.
        operations: in observed intervals.
        observed_s: observed time; of several MDTs, the longest.
    """

    name: str
    kind: str
    rate: float
    operations: float
    observed_s: float


def loads(periods: Sequence[Period]) -> list[list[Load]]:
    """Return the load of each filesystem and NFS server with data in each period, by name."""
    filesystems = dict(Filesystem.objects.values_list("pk", "name"))
    servers = list(Server.objects.filter(kind=Server.Kind.NFS))
    names = METADATA_COUNTERS if servers else ()
    counters = list(Counter.objects.filter(name__in=names).values_list("pk", flat=True))
    return [
        [*_filesystems(filesystems, *period), *_nfs_servers(servers, counters, *period)]
        for period in periods
    ]


def _filesystems(names: Mapping[int, str], start: datetime, end: datetime) -> list[Load]:
    values: dict[str, Any] = {"start": start, "end": end, "TOTAL": IoWindow.Basis.TOTAL.value}
    with connection.cursor() as cursor:
        cursor.execute(_FILESYSTEMS, values)
        rows = cursor.fetchall()
    found = (Load(names[key], "filesystem", *figures) for key, *figures in rows if key in names)
    return sorted(found, key=lambda load: load.name)


def _nfs_servers(
    servers: Iterable[Server], counters: list[int], start: datetime, end: datetime
) -> Iterator[Load]:
    for server in servers:
        # Counts before a reset are lost, so the whole interval is.
        known = services.differences(server.pk, start, end, _MAX_READS).filter(
            ~pl.col("is_reset"), pl.col("start") >= start, pl.col("end") <= end
        )
        reads = known.select("start", "end").unique()
        seconds = float((reads["end"] - reads["start"]).dt.total_seconds(fractional=True).sum())
        if seconds:
            calls = float(known.filter(pl.col("counter_id").is_in(counters))["samples"].sum())
            yield Load(server.name, "NFS server", calls / seconds, calls, seconds)


_RISE = 1.25  # ratio of rates from which a rise is stated
_LEAST_RISE = 0.05  # of the highest rate of all places; smaller rises are not stated


@dataclass(frozen=True)
class Place:
    """Metadata operations per second of a filesystem (by job id) or an NFS server (all clients).

    Args:
        name: of the filesystem or server.
        kind: "filesystem" or "NFS server".
        rates: in each period; None: not observed.
    """

    name: str
    kind: str
    rates: tuple[float | None, ...]

    @property
    def ratios(self) -> list[str]:
        """The rate of each period but the first, relative to the first."""
        first, *others = self.rates
        return [
            formatting.significant(rate / first) if first and rate is not None else ""
            for rate in others
        ]


def places(periods: Sequence[Period]) -> list[Place]:
    """Return the places with load in any of two or more periods; for staff."""
    by_period = cached(
        "moved-load",
        list(periods),
        lambda: [
            {(load.name, load.kind): load.rate for load in in_period}
            for in_period in loads(periods)
        ],
        statistics_version,
    )
    known = sorted({key for rates in by_period for key in rates})
    return [Place(*key, tuple(rates.get(key) for rates in by_period)) for key in known]


def rises(known: Sequence[Place], number: int) -> Iterator[str]:
    """Yield a sentence for each place whose load rose from the first period to another one.

    Args:
        known: the places.
        number: of the other period.
    """
    highest = max((rate or 0.0 for place in known for rate in place.rates), default=0.0)
    for place in known:
        before, after = place.rates[0], place.rates[number]
        if not before or not after:
            continue
        if after >= _RISE * before and after - before >= _LEAST_RISE * highest:
            rates = " to ".join(map(formatting.significant, (before, after)))
            yield (
                f"{capfirst(place.kind)} {place.name}: metadata operations "
                f"{ratios.measured(after / before)} ({rates} per second)."
            )
