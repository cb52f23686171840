"""Users and projects, and the page of each."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from ioportal.jobs.models import Job
from ioportal.site.models import UserAccount
from ioportal.web.common import exports
from ioportal.web.common.requests import storable
from ioportal.web.flags import badges
from ioportal.web.flags.inbox import ALL
from ioportal.web.jobs import columns
from ioportal.web.people.page import HEADER, PROJECTS, USERS, People, Person
from ioportal.web.trends.page import Trends

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest
    from ioportal.web.people.page import Kind

_JOB_COLUMNS = (
    "job",
    "metadata_operations",
    "peak_metadata_rate",
    "quality",
    "user",
    "project",
    "name",
    "state",
    "started",
    "node_count",
    "duration_s",
    "read_bytes",
    "write_bytes",
)
_TRENDS = ("jobs-ended", "node-hours", "metadata_operations", "duration_s")


@require_safe
@login_required
@exports.offered("csv", "json")
def users(request: UserRequest) -> HttpResponseBase:
    """Everybody whose jobs one may see."""
    return _people(request, USERS)


@require_safe
@login_required
@exports.offered("csv", "json")
def projects(request: UserRequest) -> HttpResponseBase:
    """Every project of jobs that one may see."""
    return _people(request, PROJECTS)


@require_safe
@login_required
@exports.offered("json")
def user(request: UserRequest, name: str) -> HttpResponseBase:
    """One user."""
    return _person(request, USERS, storable(name))


@require_safe
@login_required
@exports.offered("json")
def project(request: UserRequest, name: str) -> HttpResponseBase:
    """One project."""
    return _person(request, PROJECTS, storable(name))


def _people(request: UserRequest, kind: Kind) -> HttpResponseBase:
    page = People(kind, request.user, request.GET)
    if exports.asked_format(request):
        if page.filter.errors:
            return exports.refuse(page.filter.errors)
        about = {"sort": page.sort, "simulated": page.simulated}
        rows = (sums.row for sums in page.sums)
        return exports.twin(request, kind.plural.lower(), about, HEADER, rows)
    return render(
        request,
        "people/list.html",
        {"section": kind.plural.lower(), "people": page, "kind": kind},
    )


def _person(request: UserRequest, kind: Kind, name: str) -> HttpResponseBase:
    if not Job.objects.visible_to(request.user).filter(**{kind.field: name}).exists():
        raise Http404(f"You can see no jobs of {kind.title.lower()} {name}.")
    person = Person(kind, name, request.user, request.GET)
    if exports.asked_format(request):
        if person.filter.errors:
            return exports.refuse(person.filter.errors)
        figures = dict(zip(HEADER, person.sums.row, strict=True)) if person.sums else {}
        return exports.json_response({**figures, "simulated": person.simulated})
    trends = Trends(request.user, request.GET, {kind.name: name})
    if person.sums:
        badges.mark([*person.worst, *person.typical], request.user)
    return render(
        request,
        "people/detail.html",
        {
            "section": kind.plural.lower(),
            "person": person,
            "account": _account(request, kind, name),
            "kind": kind,
            "columns": [columns.BY_NAME[column] for column in _JOB_COLUMNS if column != kind.name],
            "flags": badges.of_owner(name, request.user) if kind is USERS else [],
            "flags_url": f"{reverse('flag_list')}?{urlencode({'state': ALL, 'user': name})}",
            "trends": trends,
            "charts": list(trends.charts(_TRENDS)),
        },
    )


def _account(request: UserRequest, kind: Kind, name: str) -> UserAccount | None:
    """Return what is registered of a user, for those who may know."""
    if kind is not USERS:
        return None
    return UserAccount.objects.visible_to(request.user).filter(name=name).first()
