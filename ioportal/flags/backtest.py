"""What limits would have flagged in the past, beside those that are in force: read only.

Jobs are judged once, by what they had done when they ended; users by the day, hosts by five minutes
and filesystems by the hour. One back-test runs at a time, in steps, and says how far it is; one
whose worker died is begun again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

import structlog

from ioportal.analysis.rules import BY_CODE
from ioportal.analysis.rules.evidence import DAY
from ioportal.analysis.rules.rule import Subject
from ioportal.flags import evidence
from ioportal.flags.judging import by_limits
from ioportal.flags.limits import Book
from ioportal.flags.models import BackTest, LimitSet
from ioportal.jobs.models import Filesystem, Job

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from ioportal.analysis.rules.rule import Rule
    from ioportal.flags.evidence import Evidence

log = structlog.get_logger()

LISTED = 500  # subjects that are stored by name
_STEPS = 40
_OF_JOBS = timedelta(days=1)  # at most in one step


@dataclass
class _Result:
    """Who was flagged by the limits in force, and by those tried."""

    judged: int = 0
    now: dict[str, dict[str, Any]] = field(default_factory=dict)
    tried: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, rule: Rule, found: Evidence, in_force: Book, wanted: Book) -> None:
        """Judge some subjects by both."""
        self.judged += found.frame.height
        for book, into in ((in_force, self.now), (wanted, self.tried)):
            for limits, frame in by_limits(rule, found, book):
                if limits.is_on:
                    _keep_worst(rule, rule.check(frame, limits.limits), frame, into)


def _keep_worst(
    rule: Rule, findings: pl.DataFrame, frame: pl.DataFrame, into: dict[str, dict[str, Any]]
) -> None:
    about = frame.select("subject", "owner", "until", "quality", "trace_quality")
    for row in findings.join(about, on="subject").iter_rows(named=True):
        value = row["numbers"][rule.measure]
        before = into.get(row["subject"])
        if before is None or value > before["value"]:
            into[row["subject"]] = {
                "subject": row["subject"],
                "owner": row["owner"] or "",
                "value": value,
                "until": row["until"].isoformat(),
            }


def run_waiting() -> int:
    """Run the oldest back-test that is not over; return how many were run: one, or none."""
    unfinished = [BackTest.State.WAITING, BackTest.State.RUNNING]
    test = BackTest.objects.filter(state__in=unfinished).order_by("pk").first()
    if test is None:
        return 0
    rule = BY_CODE.get(test.rule)
    begun = monotonic()
    BackTest.objects.filter(pk=test.pk).update(state=BackTest.State.RUNNING, done_share=0)
    try:
        if rule is None:
            raise ValueError(f"There is no rule {test.rule} any more.")  # noqa: TRY301
        result = _run(test, rule)
    except Exception as error:
        log.exception("back_test_failed", back_test=test.pk)
        BackTest.objects.filter(pk=test.pk).update(
            state=BackTest.State.FAILED, error=f"{type(error).__name__}: {error}"[:500]
        )
        return 1
    BackTest.objects.filter(pk=test.pk).update(
        state=BackTest.State.DONE,
        done_share=1,
        judged=result.judged,
        took_s=monotonic() - begun,
        found=_listed(result),
        counts=_counts(result),
    )
    return 1


def _run(test: BackTest, rule: Rule) -> _Result:
    sets = list(LimitSet.objects.in_force().select_related("cluster", "filesystem"))
    wanted = LimitSet(
        rule=rule.code,
        cluster=test.cluster,
        filesystem=test.filesystem,
        queue=test.queue,
        limits=test.limits,
        is_on=True,
    )
    of_scope = (rule.code, test.cluster_id, test.filesystem_id, test.queue)
    others = [
        one for one in sets if (one.rule, one.cluster_id, one.filesystem_id, one.queue) != of_scope
    ]
    in_force, tried = Book(sets), Book([*others, wanted])
    result = _Result()
    for done, found in _evidence(rule.subject, test.start, test.end):
        result.add(rule, found, in_force, tried)
        BackTest.objects.filter(pk=test.pk).update(done_share=done, judged=result.judged)
    return result


def _evidence(kind: Subject, start: datetime, end: datetime) -> Iterator[tuple[float, Evidence]]:
    """Yield the evidence of a period in steps, each with the part that is then done."""
    step = min(max((end - start) / _STEPS, timedelta(hours=1)), _OF_JOBS)
    begin = start
    while begin < end:
        until = min(begin + step, end)
        for found in _of_step(kind, begin, until):
            yield (until - start) / (end - start), found
        begin = until


def _of_step(kind: Subject, start: datetime, end: datetime) -> Iterator[Evidence]:
    if kind is Subject.JOB:
        yield evidence.of_jobs_that_ended(start, end)
    elif kind is Subject.USER:
        jobs = Job.objects.overlapping(end - DAY, end).exclude(owner="")
        owners = jobs.values_list("owner", flat=True).distinct()
        yield evidence.of_users(owners, end)
    else:
        of_kind = evidence.of_hosts_over if kind is Subject.HOST else evidence.of_filesystem_over
        for filesystem in Filesystem.objects.values_list("pk", flat=True):
            yield of_kind(filesystem, start, end)


def _counts(result: _Result) -> dict[str, int]:
    now, tried = set(result.now), set(result.tried)
    owners = {
        name: {one["owner"] for one in found.values()} - {""}
        for name, found in (("now", result.now), ("tried", result.tried))
    }
    return {
        "now": len(now),
        "tried": len(tried),
        "both": len(now & tried),
        "only_now": len(now - tried),
        "only_tried": len(tried - now),
        "owners_now": len(owners["now"]),
        "owners_tried": len(owners["tried"]),
    }


def _listed(result: _Result) -> list[dict[str, Any]]:
    """Return who is flagged by either; first those about whom the two differ, worst first."""
    both = result.now | result.tried
    rows = [
        {**row, "now": subject in result.now, "tried": subject in result.tried}
        for subject, row in both.items()
    ]
    rows.sort(key=lambda row: (row["now"] == row["tried"], -row["value"], row["subject"]))
    return rows[:LISTED]
