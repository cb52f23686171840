"""Results of back-tests: a summary as text, and the affected subjects by name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models.functions import Coalesce
from django.urls import reverse

from ioportal.core.formatting import counted
from ioportal.jobs.models import Job
from ioportal.load.impact.principal_windows import principal_key, principal_name
from ioportal.load.principals import HOSTS, job_group_name, process_names_of
from ioportal.rules.rule import Subject
from ioportal.site.models import Filesystem, Nid
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioportal.findings.models import BackTest
    from ioportal.rules.rule import Rule

EVALUATED = {  # by the kind of subject
    Subject.JOB: "jobs that ended in this period",
    Subject.USER: "days of users, projects, applications and campaigns",
    Subject.HOST: "five-minute intervals of hosts and processes",
    Subject.FILESYSTEM: "hours of filesystems",
}


@dataclass(frozen=True)
class AffectedSubject:
    """A subject that is flagged by the current thresholds, the proposed ones, or both."""

    subject: str
    name: str
    address: str
    owner: str
    value: float
    until: datetime
    current: bool
    proposed: bool


def summary(rule: Rule, test: BackTest) -> str:
    """Return the difference between current and proposed thresholds as text."""
    counts = test.counts
    current, proposed = (_flagged(rule, counts, name) for name in ("current", "proposed"))
    if not counts["only_current"] and not counts["only_proposed"]:
        return f"No change: current and proposed thresholds flag {proposed}."
    changes = [
        f"{count:,} {label}"
        for count, label in (
            (counts["only_proposed"], "added"),
            (counts["only_current"], "removed"),
        )
        if count
    ]
    return (
        f"Proposed thresholds flag {proposed}, current thresholds {current}: {', '.join(changes)}."
    )


def _flagged(rule: Rule, counts: dict[str, int], thresholds: str) -> str:
    subjects, owners = counts[thresholds], counts[f"owners_{thresholds}"]
    text = counted(subjects, rule.subject)
    if rule.subject is not Subject.JOB or not owners:
        return text
    # Back-tests of earlier releases did not count cases.
    cases = counts.get(f"cases_{thresholds}")
    in_cases = f" in {counted(cases, 'case')}" if cases is not None else ""
    return f"{text} of {counted(owners, 'user')}{in_cases}"


def affected_subjects(rule: Rule, test: BackTest) -> list[AffectedSubject]:
    """Return the subjects of a back-test by name; for staff."""
    names = _NAMES[rule.subject]([row["subject"] for row in test.subjects])
    rows = []
    for row in test.subjects:
        unknown = (f"{rule.subject} {row['subject']} (deleted)", "")
        name, address = names.get(row["subject"], unknown)
        until = datetime.fromisoformat(row["until"])
        rows.append(AffectedSubject(**{**row, "name": name, "address": address, "until": until}))
    return rows


def _jobs(subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    jobs = Job.objects.only("batch_id", "array_index", "name").in_bulk(map(int, subjects))
    return {
        str(pk): (f"{job.display_id} {job.name}".strip(), reverse("job", args=[pk]))
        for pk, job in jobs.items()
    }


def _groups(subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the names of groups of jobs; the subjects begin with the kind."""
    names = {}
    for subject in subjects:
        kind, _, text = subject.partition(" ")
        group = job_group_name(kind, text)
        names[subject] = (f"{kind} {group.text}", group.address)
    return names


def _hosts(subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the names of processes, hosts and their jobs; the subjects are kind and key."""
    principals = list(map(principal_key, subjects))
    keys = {kind: [key for other, key in principals if other == kind] for kind in Principal}
    hosts = Nid.objects.filter(pk__in=[key for kind in HOSTS for key in keys[kind]])
    return {
        **{
            principal_name((Principal.JOB, int(key))): (f"job {text}", address)
            for key, (text, address) in _jobs(map(str, keys[Principal.JOB])).items()
        },
        **{
            principal_name((Principal.PROCESS, key)): (name.text, "")
            for key, name in process_names_of(keys[Principal.PROCESS]).items()
        },
        **{
            principal_name((kind, pk)): (f"host {text}{addition}", "")
            for pk, text in hosts.values_list("pk", Coalesce("node__name", "text"))
            for kind, addition in HOSTS.items()
        },
    }


def _filesystems(subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    filesystems = Filesystem.objects.filter(pk__in=map(int, subjects))
    return {str(pk): (name, "") for pk, name in filesystems.values_list("pk", "name")}


_NAMES = {
    Subject.JOB: _jobs,
    Subject.USER: _groups,
    Subject.HOST: _hosts,
    Subject.FILESYSTEM: _filesystems,
}
