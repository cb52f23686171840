"""What a back-test found, in words and by name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models.functions import Coalesce
from django.urls import reverse

from ioportal.analysis.rules.rule import Subject
from ioportal.jobs.models import Job
from ioportal.site.models import Filesystem, Nid, SourceJobId
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioportal.analysis.rules.rule import Rule
    from ioportal.flags.models import BackTest

_JUDGED = {
    Subject.JOB: "jobs that ended in this time",
    Subject.USER: "users' days",
    Subject.HOST: "five minutes of hosts and processes",
    Subject.FILESYSTEM: "hours of filesystems",
}


@dataclass(frozen=True)
class Row:
    """Somebody who is flagged by the thresholds in force, by those tried, or by both."""

    subject: str
    name: str
    address: str
    owner: str
    value: float
    until: datetime
    current: bool
    proposed: bool


def sentence(rule: Rule, test: BackTest) -> str:
    """Return what the thresholds tried would change."""
    counts = test.counts
    now = _many(rule, counts["current"], counts["owners_current"])
    tried = _many(rule, counts["proposed"], counts["owners_proposed"])
    if not counts["only_current"] and not counts["only_proposed"]:
        return f"They would change nothing: they flag {tried}, as the thresholds in force do."
    changes = [
        f"{count:,} {words}"
        for count, words in (
            (counts["only_proposed"], "more"),
            (counts["only_current"], "no longer"),
        )
        if count
    ]
    return (
        f"They would flag {tried}, where the thresholds in force flag {now}: {', '.join(changes)}."
    )


def _many(rule: Rule, count: int, owners: int) -> str:
    many = f"{count:,} {rule.subject}{'' if count == 1 else 's'}"
    if rule.subject is not Subject.JOB or not owners:
        return many
    return f"{many} of {owners:,} user{'' if owners == 1 else 's'}"


def judged(rule: Rule) -> str:
    """Return what was judged by a rule, in the plural."""
    return _JUDGED[rule.subject]


def named(rule: Rule, test: BackTest) -> list[Row]:
    """Return whom a back-test found, by name; staff may know all."""
    names = _NAMED[rule.subject]([row["subject"] for row in test.subjects])
    rows = []
    for row in test.subjects:
        name, address = names.get(row["subject"], (f"{rule.subject} {row['subject']}, gone", ""))
        until = datetime.fromisoformat(row["until"])
        rows.append(Row(**{**row, "name": name, "address": address, "until": until}))
    return rows


def _jobs(subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    jobs = Job.objects.only("batch_id", "array_index", "name").in_bulk(map(int, subjects))
    return {
        str(pk): (f"{job.display_id} {job.name}".strip(), reverse("job", args=[pk]))
        for pk, job in jobs.items()
    }


def _users(subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    return {name: (name, reverse("user", args=[name])) for name in subjects}


def _hosts(subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Name processes and hosts by their kind and key."""
    keys = [tuple(map(int, subject.split(":"))) for subject in subjects]
    of = {kind: [key for of, key in keys if of == kind] for kind in Principal}
    processes = SourceJobId.objects.filter(pk__in=of[Principal.PROCESS])
    hosts = Nid.objects.filter(pk__in=of[Principal.HOST])
    return {
        **{
            f"{Principal.PROCESS}:{pk}": (f"process {text}", "")
            for pk, text in processes.values_list("pk", "text")
        },
        **{
            f"{Principal.HOST}:{pk}": (f"host {text}", "")
            for pk, text in hosts.values_list("pk", Coalesce("node__name", "text"))
        },
    }


def _filesystems(subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    known = Filesystem.objects.filter(pk__in=map(int, subjects))
    return {str(pk): (name, "") for pk, name in known.values_list("pk", "name")}


_NAMED = {
    Subject.JOB: _jobs,
    Subject.USER: _users,
    Subject.HOST: _hosts,
    Subject.FILESYSTEM: _filesystems,
}
