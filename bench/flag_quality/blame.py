"""Flags as rows: the subject that a flag names, its case, and its first time.

`blame` is the only place that knows how flags name their subjects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.activity.job_groups import Application
from ioportal.activity.principal_windows import principal_key
from ioportal.analysis.rules.rule import Subject
from ioportal.jobs.models import Job
from ioportal.site import process_names
from ioportal.site.models import Nid, SourceJobId
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.flags.models import Flag


@dataclass(frozen=True)
class Blame:
    """A flag.

    Args:
        rule: code of its rule.
        kind: job, application, user, project, host or filesystem, as in the truth.
        name: its name there: a batch id, a NID or process.
        case: number of its case.
        observed: when it appeared in the stream, with any severity.
        first_seen: when it had its severity first.
        is_accusation: its severity is a warning or higher; a notice is advice.
        strength: value of its measure relative to the threshold.
        value: latest value of its measure.
    """

    rule: str
    kind: str
    name: str
    case: int
    observed: datetime
    first_seen: datetime
    is_accusation: bool
    strength: float
    value: float


def blame(flag: Flag, observed: datetime, first_seen: datetime, *, is_accusation: bool) -> Blame:
    """Return a flag's row."""
    name = flag.subject
    if flag.job:
        name = flag.job.batch_id
    elif flag.subject_kind == Subject.HOST:
        kind, key = principal_key(flag.subject)
        if kind == Principal.JOB:
            name = Job.objects.get(pk=key).batch_id
        elif (uid := process_names.uid_of_key(key)) is not None:  # of one host in labelled sets
            name = str(SourceJobId.objects.filter(text__endswith=f".{uid}")[0])
        else:
            name = str((SourceJobId if kind == Principal.PROCESS else Nid).objects.get(pk=key))
    elif flag.subject_kind == Subject.APPLICATION:
        name = " ".join(Application.from_text(flag.subject))
    strength = flag.value / flag.threshold if flag.threshold else 1.0
    return Blame(
        flag.rule,
        flag.subject_kind,
        name,
        flag.case_id,
        observed,
        first_seen,
        is_accusation,
        strength,
        flag.value,
    )
