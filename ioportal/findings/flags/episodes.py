"""The episodes of impact behind a flag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.findings import latest_data
from ioportal.load.impact import episodes, principal_windows
from ioportal.rules.evidence import DAY, PEAK_SPAN
from ioportal.rules.rule import GROUPS, Subject
from ioportal.site.models import Server
from ioportal.telemetry import retention
from ioportal.telemetry.models import JobGroup, Principal

if TYPE_CHECKING:
    from ioportal.findings.models import Flag
    from ioportal.load.impact.episodes import Episode
    from ioportal.load.top_consumers import PrincipalKey


def principal(flag: Flag) -> PrincipalKey | None:
    """Return the principal that a flag is about; None for users and filesystems."""
    if flag.job_id:
        return int(Principal.JOB), flag.job_id
    if flag.subject_kind == Subject.HOST:
        return principal_windows.principal_key(flag.subject)
    return None


def episodes_of(flag: Flag) -> list[Episode]:
    """Return the episodes of a flag's job, host or group of jobs, largest impact first.

    Episodes of a current flag extend to the last complete window.
    """
    always, complete = retention.ALWAYS, latest_data.complete_until()
    end = flag.until if flag.ended_at else always.end
    if flag.subject_kind in GROUPS:
        kind = JobGroup.Kind[flag.subject_kind.upper()]
        groups = JobGroup.objects.filter(kind=kind, text=flag.subject)
        principals = [(int(kind), key) for key in groups.values_list("pk", flat=True)]
        return episodes.of_principals(principals, flag.since - DAY, end, complete)
    subject = principal(flag)
    if subject is None:
        return []
    if flag.job:
        start = flag.job.started_at or always.start
        return episodes.of_principals([subject], start, always.end, complete)
    # A host is flagged for one filesystem and time alone.
    servers = set(Server.objects.filter(filesystem=flag.filesystem_id).values_list("pk", flat=True))
    found = episodes.of_principals([subject], flag.since - PEAK_SPAN, end, complete)
    return [episode for episode in found if episode.server_id in servers]
