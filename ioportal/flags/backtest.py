"""What limits would have flagged in the past, beside those that are in force: read only.

Jobs are judged once, by what they had done when they ended; users by the day, hosts by five minutes
and filesystems by the hour. As in live judging, only good data blame anybody. One back-test runs at
a time, in steps, and says how far it is; one whose worker died is begun again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

import polars as pl
import structlog
from django.db import connection, transaction

from ioportal.analysis.rules import BY_CODE
from ioportal.analysis.rules.evidence import DAY
from ioportal.analysis.rules.rule import Subject
from ioportal.flags import evidence, flagging, others
from ioportal.flags.judging import by_limits
from ioportal.flags.limits import Book, Place
from ioportal.flags.models import BackTest, LimitSet
from ioportal.jobs.models import Job
from ioportal.site.models import Filesystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.analysis.rules.rule import Rule
    from ioportal.flags.evidence import Evidence
    from ioportal.flags.limits import InForce

log = structlog.get_logger()

LISTED = 500  # subjects that are stored by name
_STEPS = 30
_HOUR = timedelta(hours=1)
_ASKED = ("rule", "limits", "cluster", "filesystem", "queue", "start", "end")
_OVER = {
    "subject": pl.String(),
    "owner": pl.String(),
    "value": pl.Float64(),  # of the rule's measure
    "until": evidence.ABOUT["until"],
    "is_good": pl.Boolean(),  # its data are: others would be withheld
}


@dataclass
class _Result:
    """Who is over the limits in force, and over those tried: a subject may be so several times."""

    judged: int = 0
    now: list[pl.DataFrame] = field(default_factory=list)
    tried: list[pl.DataFrame] = field(default_factory=list)

    def add(self, rule: Rule, found: Evidence, in_force: Book, wanted: Book) -> None:
        """Judge some subjects by both."""
        self.judged += found.frame.height
        for book, into in ((in_force, self.now), (wanted, self.tried)):
            into += [_over(rule, limits, frame) for limits, frame in by_limits(rule, found, book)]


def _over(rule: Rule, in_force: InForce, frame: pl.DataFrame) -> pl.DataFrame:
    """Return which rows of evidence are over some limits."""
    if not in_force.is_on:
        return pl.DataFrame(schema=_OVER)
    # A host has a row for each five minutes: the check sees the row's number for a subject.
    rows = frame.with_columns(row=pl.int_range(pl.len()).cast(pl.String))
    findings = rule.check(rows.with_columns(subject="row"), in_force.limits)
    value = pl.col("numbers").struct.field(rule.measure).cast(pl.Float64).fill_null(0)
    about = rows.with_columns(pl.col("owner").fill_null(""), is_good=flagging.blames(rule))
    return findings.select(row="subject", value=value).join(about, on="row").select(*_OVER)


def _worst(over: list[pl.DataFrame]) -> pl.DataFrame:
    """Return each subject once, at its worst; of good data, if there are any."""
    rows = pl.concat([pl.DataFrame(schema=_OVER), *over])
    order = rows.sort("is_good", "value", "subject", descending=[True, True, False])
    return order.unique("subject", keep="first", maintain_order=True)


@transaction.atomic
def ask_for(test: BackTest) -> BackTest:
    """Store a question, unless it is asked already and not answered (a form sent twice)."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE flags_backtest IN SHARE ROW EXCLUSIVE MODE")
    same = {name: getattr(test, name) for name in _ASKED}
    asked = BackTest.objects.unfinished().filter(**same).first()
    if asked is None:
        test.save()
    return asked or test


def run_waiting() -> int:
    """Run the oldest back-test that is not over; return how many were run: one, or none."""
    test = BackTest.objects.unfinished().order_by("pk").first()
    if test is None:
        return 0
    _tell(test, state=BackTest.State.RUNNING, done_share=0)
    begun = monotonic()
    try:
        if _run(test):
            _tell(test, state=BackTest.State.DONE, done_share=1, took_s=monotonic() - begun)
    except Exception as error:
        log.exception("back_test_failed", back_test=test.pk)
        words = f"{type(error).__name__}: {error}"[:500]
        _tell(test, state=BackTest.State.FAILED, error=words)
    return 1


def _tell(test: BackTest, **facts: Any) -> bool:
    """Store how far it is; return whether anybody still wants it."""
    return BackTest.objects.unfinished().filter(pk=test.pk).update(**facts) == 1


def _run(test: BackTest) -> bool:
    """Judge the period; return whether it came to its end."""
    if test.rule not in BY_CODE:
        raise ValueError(f"There is no rule {test.rule} any more.")
    rule = BY_CODE[test.rule]
    sets = list(LimitSet.objects.in_force().select_related("cluster", "filesystem"))
    wanted = LimitSet(
        rule=rule.code,
        cluster=test.cluster,
        filesystem=test.filesystem,
        queue=test.queue,
        limits=test.limits,
        is_on=True,
    )
    in_force = Book(sets)
    tried = Book([*(one for one in sets if not one.is_in_place_of(wanted)), wanted])
    place = Place(test.cluster_id, test.filesystem_id, test.queue)
    if not _tell(test, in_force=in_force.at(rule, place).limits):
        return False
    result = _Result()
    for done, found in _evidence(rule, test.start, test.end):
        result.add(rule, found, in_force, tried)
        if not _tell(test, done_share=done, judged=result.judged):
            return False
    now, then = _worst(result.now), _worst(result.tried)
    return _tell(test, found=_listed(now, then), counts=_counts(now, then))


def _evidence(rule: Rule, start: datetime, end: datetime) -> Iterator[tuple[float, Evidence]]:
    """Yield the evidence of a period in steps, each with the part that is then done."""
    step = DAY if rule.subject is Subject.USER else min(max((end - start) / _STEPS, _HOUR), DAY)
    usual = others.months(rule.others)
    begin = start
    while begin < end:
        until = min(begin + step, end)
        for found in _of_step(rule, usual, begin, until):
            yield (until - start) / (end - start), found
        begin = until


def _of_step(rule: Rule, usual: others.Usual, start: datetime, end: datetime) -> Iterator[Evidence]:
    kind = rule.subject
    if kind is Subject.JOB:
        yield evidence.of_jobs_that_ended(start, end, usual)
    elif kind is Subject.USER:
        jobs = Job.objects.overlapping(end - DAY, end).exclude(owner="")
        owners = jobs.values_list("owner", flat=True).distinct()
        yield evidence.of_users(owners, end)
    else:
        of_kind = evidence.of_hosts_over if kind is Subject.HOST else evidence.of_filesystem_over
        for filesystem in Filesystem.objects.values_list("pk", flat=True):
            yield of_kind(filesystem, start, end)


def _counts(now: pl.DataFrame, tried: pl.DataFrame) -> dict[str, int]:
    counts = {}
    flagged, owners = {}, {}
    for name, frame in (("now", now), ("tried", tried)):
        good = frame.filter("is_good")
        flagged[name] = set(good["subject"])
        owners[name] = set(good["owner"]) - {""}
        counts[name] = good.height
        counts[f"owners_{name}"] = len(owners[name])
        counts[f"withheld_{name}"] = frame.height - good.height
    return counts | {
        "both": len(flagged["now"] & flagged["tried"]),
        "only_now": len(flagged["now"] - flagged["tried"]),
        "only_tried": len(flagged["tried"] - flagged["now"]),
    }


def _listed(now: pl.DataFrame, tried: pl.DataFrame) -> list[dict[str, Any]]:
    """Return who is flagged by either; first those about whom the two differ, worst first."""
    of_now, of_tried = (frame.filter("is_good") for frame in (now, tried))
    rows = _worst([of_now, of_tried]).with_columns(
        now=pl.col("subject").is_in(of_now["subject"].implode()),
        tried=pl.col("subject").is_in(of_tried["subject"].implode()),
    )
    differs = pl.col("now") != pl.col("tried")
    order = [differs, pl.col("value"), pl.col("subject")]
    first = rows.sort(order, descending=[True, True, False]).head(LISTED)
    return [
        {**row, "until": row["until"].isoformat()}
        for row in first.drop("is_good").iter_rows(named=True)
    ]
