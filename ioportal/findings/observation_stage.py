"""The observation stage: who does most of the work of slow servers, before any accusation.

A rule needs the end of a queue, or 90 s of it (`load.impact.replays`). Until then, an observation
is available within seconds. It has no severity and is never mailed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from django.db import transaction
from django.utils import timezone

from ioportal.core.times import is_current
from ioportal.core.units import Source
from ioportal.findings.models import Flag, Observation
from ioportal.ingest import pending_attribution
from ioportal.load import baselines
from ioportal.load.impact import job_groups, latest_work, principal_windows
from ioportal.load.impact.job_groups import Application
from ioportal.load.impact.latest_work import Share
from ioportal.rules import RULES
from ioportal.rules.evidence import PEAK_SPAN
from ioportal.rules.rule import GROUPS, PROJECT_GROUPS, Severity, Subject
from ioportal.site import process_names
from ioportal.site.job_id_pattern import has_uid
from ioportal.site.models import Server, SourceJobId, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage, JobGroup, Principal, floor_to_window

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from ioportal.load.impact.latest_work import LatestWork
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.telemetry.coverage import Interval

    _Subject = tuple[str, str]  # kind, and key or name

_ABOUT_HARM = [
    rule.code
    for rule in RULES
    if rule.source is Source.IMPACT or (rule.needs_harm and rule.subject is Subject.HOST)
]
_JOB_GROUPS = [kind.value for kind in GROUPS]
_JOBS_OF = "jobs of"  # a subject that `Subject` lacks: any flagged job of a user


class Observed(NamedTuple):
    """A server that is slow now.

    Args:
        observation: when and how slow it is.
        shares: who does most of the work: only accused principals, or only others.
        is_accused: whether whoever does most of it is accused; otherwise it is under observation.
    """

    observation: Observation
    shares: list[Share]
    is_accused: bool


def observe(now: datetime | None = None) -> None:
    """Evaluate the latest windows of the metadata servers with current data.

    Safe to repeat: servers without new windows are skipped.
    """
    now = now or timezone.now()
    evaluated = dict(Observation.objects.values_list("server", "until"))
    servers = Server.objects.filter(kind=Server.Kind.MDS).select_related("filesystem")
    traced = _traced_until(servers, now)
    usual = baselines.at_time(list(traced), now)
    with_baseline = set(usual["server"])
    traced = {server: end for server, end in traced.items() if server in with_baseline}
    due = {server: end for server, end in traced.items() if evaluated.get(server) != end}
    works = latest_work.traced(due, usual)
    rows = [_row(server, end, works.get(server)) for server, end in due.items()]
    for server, end in _counted_until(servers, now).items():
        if server not in traced and evaluated.get(server) != end:
            work = latest_work.estimated(server, end)
            rows.append(_row(server, end, work, is_estimated=True))
    with transaction.atomic():
        Observation.objects.filter(server__in=[row.server_id for row in rows]).delete()
        Observation.objects.bulk_create(rows)


def _row(
    server: int, until: datetime, work: LatestWork | None, *, is_estimated: bool = False
) -> Observation:
    row = Observation(server_id=server, until=until, is_estimated=is_estimated)
    if work:
        row.since, row.times, row.is_known = work.since, work.times, work.is_known
        row.shares = [(*share.principal, share.share) for share in work.shares]
    return row


def _traced_until(servers: Collection[Server], now: datetime) -> dict[int, datetime]:
    """Return the end of the attributed windows of each server with a current trace."""
    keys = [server.pk for server in servers]
    ends = coverage.last_observed(Coverage.Source.RPC_TRACE, coverage.contiguous(keys))
    pending = pending_attribution.trace_intervals(keys, now - PEAK_SPAN, now)
    return _complete(
        {server: _before(end, pending.get(server)) for server, end in ends.items()}, now
    )


def _counted_until(servers: Collection[Server], now: datetime) -> dict[int, datetime]:
    """Return the end of the windows that all current counters of each server cover.

    Exports show whether nodes sent what claims to be of their jobs, so they are waited for.
    """
    keys = [server.pk for server in servers]
    read = coverage.last_observed(Coverage.Source.MDS_STATS, coverage.polled(keys))
    mdts = list(Target.objects.filter(kind=Target.Kind.MDT))
    gaps = {mdt.pk: mdt.poll_gap for mdt in mdts}
    counted, exported = (
        {
            mdt: end
            for mdt, end in coverage.last_observed(source, gaps).items()
            if is_current(end, now)
        }
        for source in (Coverage.Source.JOB_STATS, Coverage.Source.EXPORTS)
    )
    pending = pending_attribution.delta_intervals(gaps, now - PEAK_SPAN, now)
    ends = {}
    for server in servers:
        if server.pk not in read:
            continue
        on_server = {
            mdt.pk
            for mdt in mdts
            if mdt.server_id == server.pk
            or (mdt.server_id is None and mdt.filesystem_id == server.filesystem_id)
        }
        sources = [counted]
        if on_server <= exported.keys() and not has_uid(server.filesystem.job_id_pattern):
            sources.append(exported)
        ends[server.pk] = min(
            [
                read[server.pk],
                *(
                    _before(source[mdt], pending.get(mdt))
                    for source in sources
                    for mdt in on_server & source.keys()
                ),
            ]
        )
    return _complete(ends, now)


def _before(end: datetime, pending: list[Interval] | None) -> datetime:
    return min([end, *(interval.start for interval in pending or ())])


def _complete(ends: Mapping[int, datetime], now: datetime) -> dict[int, datetime]:
    """Return the end of the last complete window, where it is current."""
    complete = {server: floor_to_window(end) for server, end in ends.items()}
    return {server: end for server, end in complete.items() if is_current(end, now)}


def slow(now: datetime) -> list[Observation]:
    """Return the servers that are slow now, by name."""
    rows = Observation.objects.exclude(since=None).select_related("server__filesystem")
    return [row for row in rows.order_by("server__name") if is_current(row.until, now)]


def current(now: datetime | None = None) -> list[Observed]:
    """Return the servers that are slow now, and who does most of the work.

    If whoever does most of it is accused, only the accused are named: the others may be waiting.
    """
    rows = slow(now or timezone.now())
    if not rows:
        return []
    shares = {row.pk: [Share((kind, key), part) for kind, key, part in row.shares] for row in rows}
    subjects = _subjects({share.principal for of_row in shares.values() for share in of_row})
    accused = _accused() if subjects else set()

    def is_accused(share: Share, server: Server) -> bool:
        names = subjects[share.principal]
        places: dict[str, int] = {Subject.HOST: server.filesystem_id}
        return any((kind, name, places.get(kind)) in accused for kind, name in names)

    found = []
    for row, of_row in zip(rows, shares.values(), strict=True):
        is_known = bool(of_row) and is_accused(of_row[0], row.server)
        named = [share for share in of_row if is_accused(share, row.server) == is_known]
        found.append(Observed(row, named, is_known))
    return found


def _accused() -> set[tuple[str, str, int | None]]:
    """Return the subjects of open accusations: kind, key or name, and the filesystem of hosts."""
    flags = Flag.objects.good().unresolved().filter(rule__in=_ABOUT_HARM)
    rows = flags.filter(severity__gte=Severity.WARNING).order_by()
    accused: set[tuple[str, str, int | None]] = set()
    for kind, subject, owner, place in rows.values_list(
        "subject_kind", "subject", "owner", "filesystem"
    ):
        accused.add((kind, subject, place if kind == Subject.HOST else None))
        if kind == Subject.JOB:
            accused.add((_JOBS_OF, owner, None))
    return accused


def _subjects(
    principals: Collection[PrincipalKey],
) -> dict[PrincipalKey, set[_Subject]]:
    """Return the subjects whose accusation includes each principal or group: kind, key or name."""
    subjects: dict[PrincipalKey, set[_Subject]] = defaultdict(set)
    by_kind: dict[int, list[int]] = defaultdict(list)
    for kind, key in principals:
        by_kind[kind].append(key)
        subjects[kind, key].add((Subject.HOST, principal_windows.principal_name((kind, key))))
    members = job_groups.members(by_kind[Principal.JOB])
    for name, *texts in members.select("principal", *_JOB_GROUPS).iter_rows():
        job = principal_windows.principal_key(name)
        subjects[job] = {(Subject.JOB, str(job[1])), *zip(_JOB_GROUPS, texts, strict=True)}
    groups = job_groups.by_key(key for kind, key in principals if kind in JobGroup.Kind.values)
    for kind, text, number, key in groups.iter_rows():
        subjects[number, key] = {(kind, text)}
        if kind in PROJECT_GROUPS:
            subjects[number, key].add((Subject.PROJECT, job_groups.project_of(kind, text)))
        else:
            user = Application.from_text(text).user
            subjects[number, key] |= {(Subject.USER, user), (_JOBS_OF, user)}
    processes = SourceJobId.objects.filter(pk__in=by_kind[Principal.PROCESS])
    for key, text in processes.values_list("pk", "text"):
        if (uid := process_names.uid_of(text)) is not None:
            key_of_user = process_names.key_of_uid(uid)
            all_of_user = principal_windows.principal_name((Principal.PROCESS, key_of_user))
            subjects[int(Principal.PROCESS), key].add((Subject.HOST, all_of_user))
    return subjects
