"""The judging stage: evidence of what changed is judged by all rules, and flags follow.

One judge works at a time (a lock until its transaction ends). What it finds depends on what is
stored now and on flags that are there, not on how often it looked: judged twice, nothing changes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl
from django.db import connection, transaction
from django.db.models import Min

from ioportal.analysis.rules import RULES
from ioportal.analysis.rules.rule import Subject
from ioportal.flags import evidence, flagging, harm, locks, peaks
from ioportal.flags.limits import Book, Place
from ioportal.flags.models import Flag
from ioportal.jobs.models import Job, StaleEvidence
from ioportal.site.models import Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ioportal.analysis.rules.rule import Rule
    from ioportal.flags.evidence import Evidence
    from ioportal.flags.limits import InForce


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLACE = ["cluster", "filesystem", "queue"]  # of `Place`, and of evidence


def judge_round() -> int:
    """Evaluate hosts and filesystems, then a slice of the pending jobs; return how many."""
    judge_standing()
    return judge_pending()


def judge_pending(limit: int = 500) -> int:
    """Claim jobs whose evidence changed, and judge them and their users; return how many.

    The caller goes on until it is 0. Safe to run twice and beside itself.
    """
    with transaction.atomic():
        locks.opening()
        reckoned = harm.reckon_pending()
        jobs = _claimed(limit)
        there = set(Job.objects.filter(pk__in=jobs).values_list("pk", flat=True))
        peaks.refresh({job: since for job, since in jobs.items() if since and job in there})
        found = evidence.of_jobs(there)
        book = Book()
        judge(found, book)
        for until, jobs_of_day in evidence.by_day(found.frame):
            judge(evidence.of_users(jobs_of_day["owner"].to_list(), until), book)
        _judge_flagged_users(found.frame["owner"].to_list(), book)
        return reckoned + len(jobs)


def _judge_flagged_users(owners: list[str], book: Book) -> None:
    """Evaluate flagged users by their newest jobs: an older day must not leave a flag open."""
    flags = Flag.objects.unresolved().filter(subject_kind=Subject.USER, subject__in=owners)
    flagged_until = dict(flags.values_list("subject").annotate(Min("until")))
    newer = evidence.newest_of_users(flagged_until)
    for until, users in evidence.by_day(newer):
        judge(evidence.of_users(users["owner"].to_list(), until), book)


def judge_standing() -> None:
    """Judge what is always there: filesystems, and hosts outside any job, by the newest data."""
    with transaction.atomic():
        locks.opening()
        book = Book()
        traced = evidence.traced_until()
        for filesystem, until in traced.items():
            judge(evidence.of_hosts(filesystem, until), book)
            judge(evidence.of_filesystem(filesystem, until), book)
        now = datetime.now(UTC)
        newest = max([*traced.values(), *_counted_until()], default=_EPOCH)
        flagging.let_rest(now, min(now, newest))


def _counted_until() -> Iterable[datetime]:
    """Return up to when the counters of each MDT are known."""
    targets = Target.objects.filter(kind=Target.Kind.MDT).values_list("pk", flat=True)
    return coverage.last_observed(Coverage.Source.JOB_STATS, coverage.contiguous(targets)).values()


def judge(found: Evidence, book: Book) -> None:
    """Judge subjects by all rules of their kind, and have flags follow."""
    if found.frame.is_empty():
        return
    flags = flagging.unresolved(found.kind, found.frame)
    for rule in RULES:
        if rule.subject is found.kind:
            for in_force, frame in by_limits(rule, found, book):
                flagging.follow(rule, in_force, found.kind, frame, flags.get(rule.code, {}))


def by_limits(rule: Rule, found: Evidence, book: Book) -> Iterator[tuple[InForce, pl.DataFrame]]:
    """Yield the limits that hold somewhere, and the evidence of those who are there.

    Places where the same holds are one: most sites have many queues, and set few limits.
    """
    places = found.frame.select(_PLACE).unique()
    limits = [book.at(rule, Place(*place)) for place in places.iter_rows()]
    alike = [one for n, one in enumerate(limits) if one not in limits[:n]]
    for in_force in alike:
        there = places.filter(pl.Series([one == in_force for one in limits], dtype=pl.Boolean))
        yield in_force, found.frame.join(there, on=_PLACE, how="semi", nulls_equal=True)


# All that is pending of a job together: its windows changed, its statistics, and whom it harms.
_CLAIM = """
WITH claimed AS (
    DELETE FROM jobs_staleevidence WHERE job_id = ANY(%s) RETURNING job_id, since
)
SELECT job_id, min(since) FROM claimed GROUP BY 1
"""


def _claimed(limit: int) -> dict[int, datetime | None]:
    """Take pending rows; return since when on windows of each job changed."""
    jobs = {row.job_id for row in StaleEvidence.objects.next(limit)}
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [list(jobs)])
        return dict(cursor.fetchall())
