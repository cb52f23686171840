"""What somebody means who types a word: a job, launch, PanDA job or task, user, project, node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

from ioportal.jobs.models import Job, WorkloadJob
from ioportal.jobs.workloads import numbers
from ioportal.studies.filters import named, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.contrib.auth.models import User

MOST_WORDS = 20
PER_KIND = 20  # hits that are listed
_LONGEST = 1_000  # characters that are read


@dataclass(frozen=True)
class Hit:
    """Something that the words name."""

    kind: str
    name: str
    url: str
    about: str = ""


def find(user: User, text: str) -> list[Hit]:
    """Return what the words of a text name exactly, of what `user` may see."""
    words = words_of(text[:_LONGEST])[:MOST_WORDS]
    return [hit for finder in FINDERS for hit in finder(user, words)] if words else []


def near(user: User, text: str) -> list[Hit]:
    """Return users and projects whose names begin with a text, in any case."""
    start = text[:_LONGEST].strip()
    if not start:
        return []
    return [
        Hit(kind, name, reverse(kind, args=[name]))
        for kind, field in (("user", "owner"), ("project", "project"))
        for name in Job.objects.visible_to(user)
        .filter(**{f"{field}__istartswith": start})
        .order_by(field)
        .values_list(field, flat=True)
        .distinct()[:PER_KIND]
    ]


def _jobs(user: User, words: list[str]) -> Iterator[Hit]:
    """Jobs by id, by array task, and by launch."""
    found = Job.objects.visible_to(user).filter(named(words)).select_related("cluster")
    for job in found.order_by("-submitted_at", "-pk")[:PER_KIND]:
        about = f"of {job.owner or 'nobody'} on {job.cluster}, {job.get_state_display()}"
        yield Hit("job", job.display_id, reverse("job", args=[job.pk]), about)


def _panda_jobs(user: User, words: list[str]) -> Iterator[Hit]:
    found = WorkloadJob.objects.visible_to(user).filter(panda_id__in=numbers(words))
    for job in found.select_related("cluster").order_by("-panda_id", "cluster")[:PER_KIND]:
        address = reverse("panda_job", args=[job.cluster.name, job.panda_id])
        about = f"of {job.user or 'nobody'} on {job.cluster}, {job.state}"
        yield Hit("PanDA job", str(job.panda_id), address, about)


def _tasks(user: User, words: list[str]) -> Iterator[Hit]:
    for task_id in numbers(words):
        if WorkloadJob.objects.visible_to(user).filter(task_id=task_id).exists():
            address = f"{reverse('panda_list')}?{urlencode({'jeditaskid': task_id})}"
            yield Hit("PanDA task", str(task_id), address, "its PanDA jobs")


def _users(user: User, words: list[str]) -> Iterator[Hit]:
    for word in words:
        if Job.objects.visible_to(user).filter(owner=word).exists():
            yield Hit("user", word, reverse("user", args=[word]))


def _projects(user: User, words: list[str]) -> Iterator[Hit]:
    for word in words:
        if Job.objects.visible_to(user).filter(project=word).exists():
            yield Hit("project", word, reverse("project", args=[word]))


def _nodes(user: User, words: list[str]) -> Iterator[Hit]:
    for word in words:
        if Job.objects.visible_to(user).filter(allocations__node__name=word).exists():
            address = f"{reverse('job_list')}?{urlencode({'node': word})}"
            yield Hit("node", word, address, "the jobs that ran on it")


FINDERS: tuple[Callable[[User, list[str]], Iterator[Hit]], ...] = (
    _jobs,
    _panda_jobs,
    _tasks,
    _users,
    _projects,
    _nodes,
)
