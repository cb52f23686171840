"""Search: redirects to the page of a single hit, lists several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from ioportal.findings.models import Case
from ioportal.jobs.job_filters import by_id, split_values
from ioportal.jobs.models import Allocation, Job, WorkloadJob
from ioportal.jobs.panda_jobs import valid_ids
from ioportal.load.principals import host_subjects
from ioportal.rules.rule import Subject
from ioportal.site import process_names
from ioportal.site.models import Node, Server
from ioportal.web.common.requests import parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.contrib.auth.models import User
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

MAX_TERMS = 20
PER_KIND = 20  # listed hits
_MAX_CHARACTERS = 1_000
_WITHOUT_CASES = "has no cases. The overview lists it in ranges in which it is among the busiest."


@dataclass(frozen=True)
class Hit:
    """An item with a matching name."""

    kind: str
    name: str
    url: str  # "": it has no page
    about: str = ""


def find(user: User, text: str) -> list[Hit]:
    """Return items that `user` may see whose name is a term of the text."""
    terms = split_values(text[:_MAX_CHARACTERS])[:MAX_TERMS]
    return [hit for finder in FINDERS for hit in finder(user, terms)] if terms else []


def near(user: User, text: str) -> list[Hit]:
    """Return users and projects with this prefix, in any case."""
    start = text[:_MAX_CHARACTERS].strip()
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


def _jobs(user: User, terms: list[str]) -> Iterator[Hit]:
    """Jobs by id, by array task, and by launch."""
    jobs = Job.objects.visible_to(user).filter(by_id(terms)).select_related("cluster")
    for job in jobs.order_by("-submitted_at", "-pk")[:PER_KIND]:
        about = f"{job.owner or 'unknown user'}, {job.cluster}, {job.get_state_display()}"
        yield Hit("job", job.display_id, reverse("job", args=[job.pk]), about)


def _panda_jobs(user: User, terms: list[str]) -> Iterator[Hit]:
    jobs = WorkloadJob.objects.visible_to(user).filter(panda_id__in=valid_ids(terms))
    for job in jobs.select_related("cluster").order_by("-panda_id", "cluster")[:PER_KIND]:
        address = reverse("panda_job", args=[job.cluster.name, job.panda_id])
        about = f"{job.user or 'unknown user'}, {job.cluster}, {job.state}"
        yield Hit("PanDA job", str(job.panda_id), address, about)


def _tasks(user: User, terms: list[str]) -> Iterator[Hit]:
    for task_id in valid_ids(terms):
        if WorkloadJob.objects.visible_to(user).filter(task_id=task_id).exists():
            address = f"{reverse('panda_list')}?{urlencode({'jeditaskid': task_id})}"
            yield Hit("PanDA task", str(task_id), address, "PanDA jobs of this task")


def _users(user: User, terms: list[str]) -> Iterator[Hit]:
    of_processes = process_names.users(terms).values()  # du.4711
    for term in dict.fromkeys([*terms, *of_processes]):
        if Job.objects.visible_to(user).filter(owner=term).exists():
            yield Hit("user", term, reverse("user", args=[term]))


def _projects(user: User, terms: list[str]) -> Iterator[Hit]:
    for term in terms:
        if Job.objects.visible_to(user).filter(project=term).exists():
            yield Hit("project", term, reverse("project", args=[term]))


def _nodes(user: User, terms: list[str]) -> Iterator[Hit]:
    for term in terms:
        if Job.objects.visible_to(user).filter(allocations__node__name=term).exists():
            address = f"{reverse('job_list')}?{urlencode({'node': term})}"
            yield Hit("node", term, address, "jobs on this node")


def _servers(user: User, terms: list[str]) -> Iterator[Hit]:
    """Servers, whose pages are for staff."""
    if user.is_staff:
        for server in Server.objects.filter(name__in=terms).select_related("filesystem"):
            about = f"{server.get_kind_display()} of {server.filesystem}"
            yield Hit("server", server.name, reverse("server", args=[server.name]), about)


def _outside_jobs(user: User, terms: list[str]) -> Iterator[Hit]:
    """Processes and hosts outside jobs, for staff.

    Processes of a registered user are found by the user, nodes with jobs by their jobs.
    """
    if not user.is_staff:
        return
    of_users = process_names.users(terms)
    subjects = host_subjects([term for term in terms if term not in of_users])
    has_jobs = Exists(Allocation.objects.filter(node=OuterRef("pk")))
    nodes = Node.objects.filter(has_jobs, name__in=subjects.values())
    with_jobs = set(nodes.values_list("name", flat=True))
    cases = Case.objects.visible_to(user).filter(subject_kind=Subject.HOST, subject__in=subjects)
    flagged = {subjects[subject] for subject in cases.values_list("subject", flat=True)}
    for text in sorted(set(subjects.values()))[:PER_KIND]:
        if text in flagged:
            address = f"{reverse('case_list')}?{urlencode({'q': text, 'state': 'all'})}"
            yield Hit("process or host", text, address, "cases")
        elif text not in with_jobs:
            yield Hit("process or host", text, "", _WITHOUT_CASES)


FINDERS: tuple[Callable[[User, list[str]], Iterator[Hit]], ...] = (
    _jobs,
    _panda_jobs,
    _tasks,
    _users,
    _projects,
    _nodes,
    _servers,
    _outside_jobs,
)


@require_safe
def search(request: UserRequest) -> HttpResponseBase:
    """Items by name."""
    text = parameter(request, "q")
    hits = find(request.user, text)
    if len(hits) == 1 and hits[0].url:
        return redirect(hits[0].url)
    return render(
        request,
        "search/results.html",
        {
            "searched": text,
            "hits": hits,
            "near": [] if hits else near(request.user, text),
            "per_kind": PER_KIND,
        },
    )
