"""Flags and observations as rows: the subject that they name, and the first time.

`blame` and `sighting` are the only places that know how subjects are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.jobs.models import Job
from ioportal.load.impact.job_groups import Application
from ioportal.load.impact.principal_windows import principal_key
from ioportal.rules.rule import Subject
from ioportal.site import process_names
from ioportal.site.models import Nid, SourceJobId
from ioportal.telemetry.models import JobGroup, Principal

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.findings.models import Flag
    from ioportal.load.top_consumers import PrincipalKey


@dataclass(frozen=True)
class Sighting:
    """A subject that pages name: as under observation, or by an accusation.

    Args:
        kind: job, application, user, campaign, project, host or filesystem, as in the truth.
        name: its name there: a batch id, a NID or process.
        first_seen: when it was named first.
    """

    kind: str
    name: str
    first_seen: datetime


@dataclass(frozen=True)
class Blame:
    """A flag.

    Args:
        rule: code of its rule.
        kind: job, application, user, campaign, project, host or filesystem, as in the truth.
        name: its name there: a batch id, a NID or process.
        case: number of its case.
        first_seen: when it had its severity first.
        is_accusation: its severity is a warning or higher; a notice is advice.
        strength: value of its measure relative to the threshold.
        value: latest value of its measure.
    """

    rule: str
    kind: str
    name: str
    case: int
    first_seen: datetime
    is_accusation: bool
    strength: float
    value: float


def blame(flag: Flag, first_seen: datetime, *, is_accusation: bool) -> Blame:
    """Return a flag's row."""
    name = flag.subject
    if flag.job:
        name = flag.job.batch_id
    elif flag.subject_kind == Subject.HOST:
        name = _of_principal(principal_key(flag.subject))
    else:
        name = _of_group(flag.subject_kind, flag.subject)
    strength = flag.value / flag.threshold if flag.threshold else 1.0
    return Blame(
        flag.rule,
        flag.subject_kind,
        name,
        flag.case_id,
        first_seen,
        is_accusation,
        strength,
        flag.value,
    )


def sighting(principal: PrincipalKey, first_seen: datetime) -> Sighting | None:
    """Return the row of a principal or a group of jobs; None: unattributed or unknown."""
    kind, key = principal
    if kind in JobGroup.Kind.values:
        group = JobGroup.objects.get(pk=key)
        label = group.get_kind_display()
        return Sighting(label, _of_group(label, group.text), first_seen)
    if not key:
        return None
    label = Subject.JOB if kind == Principal.JOB else Subject.HOST
    return Sighting(label, _of_principal(principal), first_seen)


def _of_group(kind: str, text: str) -> str:
    """Return the name of a group of jobs in the truth."""
    has_name = kind in {Subject.APPLICATION, Subject.CAMPAIGN}
    return " ".join(Application.from_text(text)) if has_name else text


def _of_principal(principal: PrincipalKey) -> str:
    """Return the batch id of a job, or the name of a process or host."""
    kind, key = principal
    if kind == Principal.JOB:
        return Job.objects.get(pk=key).batch_id
    if (uid := process_names.uid_of_key(key)) is not None:  # of one host in labelled sets
        return str(SourceJobId.objects.filter(text__endswith=f".{uid}")[0])
    return str((SourceJobId if kind == Principal.PROCESS else Nid).objects.get(pk=key))
