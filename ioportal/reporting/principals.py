"""What principals are called on pages that tell who is busy, and who of them may be named."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone

from ioportal.jobs.models import Job
from ioportal.site.models import Nid, SourceJobId
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.contrib.auth.models import User

    from ioportal.activity.top_consumers import Who

BYS = ("job", "user", "project")  # how jobs are told apart
_LOOKED_UP = 40  # of each kind: more are in no table and no chart
# (no user's or project's name has a blank)
_OF_NOBODY = {
    Principal.PENDING: "pending job ids",
    Principal.AMBIGUOUS: "one of several jobs",
    Principal.UNATTRIBUTED: "not attributed",
}


@dataclass(frozen=True)
class Name:
    """What a principal is called; several may share a name."""

    words: str
    address: str = ""  # of its page
    nodes: int = 0


def named(ranked: Sequence[Who], user: User, by: str) -> dict[Who, Name]:
    """Name the busiest of some principals that `user` may know.

    Args:
        ranked: the principals, busiest first.
        user: staff know all; others their own jobs and their projects', and all of these.
        by: one of `BYS`.
    """
    keys = {
        kind: [who for of, who in ranked if of == kind]
        for kind in (Principal.JOB, Principal.PROCESS, Principal.HOST)
    }
    jobs = keys[Principal.JOB]
    if by != BYS[0]:
        names = _groups(jobs, user, by)
    else:
        names = _jobs(jobs[:_LOOKED_UP] if user.is_staff else jobs, user)
    if not user.is_staff:
        return names
    processes = SourceJobId.objects.filter(pk__in=keys[Principal.PROCESS][:_LOOKED_UP])
    for pk, text in processes.values_list("pk", "text"):
        names[Principal.PROCESS, pk] = Name(f"process {text}")
    hosts = Nid.objects.filter(pk__in=keys[Principal.HOST][:_LOOKED_UP])
    for pk, text in hosts.values_list("pk", Coalesce("node__name", "text")):
        names[Principal.HOST, pk] = Name(f"host {text}", nodes=1)
    return names | {(kind, 0): Name(words) for kind, words in _OF_NOBODY.items()}


def _jobs(keys: Iterable[int], user: User) -> dict[Who, Name]:
    """Name jobs by their ids and owners."""
    fields = ("batch_id", "array_index", "owner", "node_count", "started_at")
    jobs = Job.objects.visible_to(user).filter(pk__in=keys).only(*fields)
    words = {job: f"{job.display_id} {job.owner or 'of nobody'}" for job in jobs}
    times = Counter(words.values())
    for job, text in words.items():
        if times[text] > 1:  # ids repeat
            words[job] = f"{text} {timezone.localtime(job.started_at):%Y-%m-%d %H:%M:%S}"
    return {
        (int(Principal.JOB), job.pk): Name(text, reverse("job", args=[job.pk]), job.node_count)
        for job, text in words.items()
    }


def _groups(keys: Iterable[int], user: User, by: str) -> dict[Who, Name]:
    """Name jobs by their user or project: all of one have the nodes of all."""
    field = "owner" if by == "user" else "project"
    jobs: Any = Job.objects.visible_to(user).filter(pk__in=keys)
    rows = list(jobs.values_list("pk", field, "node_count"))
    nodes: dict[str, int] = defaultdict(int)
    for _, group, count in rows:
        nodes[group] += count
    names = {
        group: Name(group, reverse(by, args=[group]), count)
        if group
        else Name(f"jobs of no {by}", nodes=count)
        for group, count in nodes.items()
    }
    return {(int(Principal.JOB), pk): names[group] for pk, group, _ in rows}
