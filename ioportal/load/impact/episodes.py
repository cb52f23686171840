"""Episodes of impact: when a principal or a group of jobs slowed down others, and how much."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection
from django.utils import timezone

from ioportal.core.formatting import times as formatted_times
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.load.analysis.slowness import SlownessCriteria
from ioportal.telemetry import levels
from ioportal.telemetry.models import floor_to_window

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from ioportal.load.top_consumers import PrincipalKey

_FIGURES = ("impact_s", "outside_s", "waited_s", "mean_times", "worst_times", "share")
LOOK_BACK = timedelta(days=1)  # for the onset of an episode that continues
_EPISODES = """
WITH followed AS (
    SELECT w.*, w.start - lag(w.start) OVER principal > %(longest_step)s AS begins
    FROM unnest(%(kinds)s::smallint[], %(keys)s::bigint[]) AS requested (kind, key)
    JOIN telemetry_impactwindow w ON w.kind = requested.kind AND w.principal_id = requested.key
    LEFT JOIN unnest(%(servers)s::bigint[], %(untils)s::timestamptz[])
        AS complete (server_id, until) USING (server_id)
    WHERE w.start >= %(start)s AND w.start < least(%(end)s, complete.until) AND w.impact_us > 0
    WINDOW principal AS (PARTITION BY w.server_id, w.kind, w.principal_id ORDER BY w.start)
),
numbered AS (
    SELECT *, count(*) FILTER (WHERE begins) OVER (
        PARTITION BY server_id, kind, principal_id ORDER BY start
    ) AS number
    FROM followed
)
SELECT server_id, kind, principal_id, min(start), max(start) + %(width)s,
    (sum(impact_us) / 1e6)::float8, coalesce(sum(outside_us) / 1e6, 0)::float8,
    coalesce(sum(others_us - others_usual_us) / 1e6, 0)::float8,
    (array_agg(start ORDER BY impact_us DESC, start))[1],
    (sum(others_us) / nullif(sum(others_usual_us), 0))::float8,
    max(others_us::float8 / nullif(others_usual_us, 0)),
    coalesce(sum(work_us) / nullif(sum(all_work_us), 0), 0)::float8,
    coalesce(sum(impact_us) FILTER (WHERE is_estimated), 0) > sum(impact_us) / 2
FROM numbered GROUP BY server_id, kind, principal_id, number
ORDER BY sum(impact_us) DESC, server_id, min(start)
"""


class Episode(NamedTuple):
    """An interval in which a principal slowed down others at a server, with short pauses.

    Source: docs/metrics.md, "Episodes".
    """

    server_id: int
    kind: int
    key: int
    start: datetime
    end: datetime  # of the last window with impact
    impact_s: float  # extra wait of other users
    outside_s: float  # extra wait of pings and of requests outside jobs
    waited_s: float  # time of others' requests above usual, whoever caused it
    worst_at: datetime  # start of the window of 10 s with the largest impact
    mean_times: float | None  # time of others' requests / usual; None: unknown
    worst_times: float | None  # the same in the worst window of 10 s
    share: float  # of the server's work in its windows
    is_estimated: bool  # most of the impact

    @property
    def principal(self) -> PrincipalKey:
        """The principal, or the group of jobs."""
        return self.kind, self.key

    @property
    def rounded(self) -> Episode:
        """The episode as its subject may see it: what a single other user waited is not exact."""
        rounded: dict[str, Any] = {
            name: value and coarse(value)
            for name, value in self._asdict().items()
            if name in _FIGURES
        }
        return self._replace(**rounded)


def of_principals(
    principals: Collection[PrincipalKey],
    start: datetime,
    end: datetime,
    until: Mapping[int, datetime],
) -> list[Episode]:
    """Return the episodes of principals and groups in windows that overlap [start, end).

    The largest impact is first.

    Args:
        principals: principals or groups.
        start: in the first window; the first window of a job begins before the job.
        end: end of the range.
        until: the end at each server, if it is earlier (`latest_data.complete_until`).
    """
    kinds, keys = zip(*principals, strict=True) if principals else ((), ())
    width = levels.IMPACT.width
    values: dict[str, Any] = {
        "kinds": list(kinds),
        "keys": list(keys),
        "start": floor_to_window(start),
        "end": end,
        "servers": list(until),
        "untils": list(until.values()),
        "width": width,
        "longest_step": width + SlownessCriteria().max_pause,
    }
    with connection.cursor() as cursor:
        cursor.execute(_EPISODES, values)
        return [Episode(*row) for row in cursor.fetchall()]


def times_text(episode: Episode) -> str:
    """Return the mean over an episode and its worst 10 s, as multiples of the usual time."""
    if episode.mean_times is None or episode.worst_times is None:
        return "longer than usual"
    mean, highest = (formatted_times(each) for each in (episode.mean_times, episode.worst_times))
    return (
        f"{mean} times as long as usual (mean over the episode; {highest} times in the worst 10 s)"
    )


def moment_text(time: datetime) -> str:
    """Return a time in the current time zone."""
    return f"{timezone.localtime(time):%Y-%m-%d %H:%M:%S %Z}"


def interval_text(start: datetime, end: datetime) -> str:
    """Return a start and an end in the current time zone."""
    start, end = timezone.localtime(start), timezone.localtime(end)
    date = "" if start.date() == end.date() else "%Y-%m-%d "
    return f"{start:%Y-%m-%d %H:%M:%S} to {end:{date}%H:%M:%S %Z}"
