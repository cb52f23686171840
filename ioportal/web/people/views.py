"""Users and projects: lists and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.core.visible_text import storable
from ioportal.jobs.models import Job
from ioportal.web.common import exports
from ioportal.web.people.page import PROJECTS, USERS, PeoplePage, PersonPage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest
    from ioportal.web.people.page import Kind


@require_safe
@exports.accept("csv", "json")
def users(request: UserRequest) -> HttpResponseBase:
    """All users with visible jobs."""
    return _people(request, USERS)


@require_safe
@exports.accept("csv", "json")
def projects(request: UserRequest) -> HttpResponseBase:
    """All projects with visible jobs."""
    return _people(request, PROJECTS)


@require_safe
@exports.accept("json")
def user(request: UserRequest, name: str) -> HttpResponseBase:
    """One user."""
    return _person(request, USERS, storable(name))


@require_safe
@exports.accept("json")
def project(request: UserRequest, name: str) -> HttpResponseBase:
    """One project."""
    return _person(request, PROJECTS, storable(name))


def _people(request: UserRequest, kind: Kind) -> HttpResponseBase:
    page = PeoplePage(kind, request.user, request.GET)
    section = kind.plural.lower()
    if not exports.requested_format(request):
        return render(request, "people/list.html", {"section": section, "page": page})
    if page.filter.errors:
        return exports.invalid_query(page.filter.errors)
    about = {
        "sort": page.sort,
        "pending_statistics": page.pending_statistics,
        "simulated": page.simulated,
    }
    return exports.response(request, section, about, *page.table.export)


def _person(request: UserRequest, kind: Kind, name: str) -> HttpResponseBase:
    if not Job.objects.visible_to(request.user).filter(**{kind.field: name}).exists():
        raise Http404(f"No visible jobs of {kind.title.lower()} {name}.")
    page = PersonPage(kind, name, request.user, request.GET)
    if not exports.requested_format(request):
        context = {"section": kind.plural.lower(), "page": page}
        return render(request, "people/detail.html", context)
    if page.filter.errors:
        return exports.invalid_query(page.filter.errors)
    return exports.json_response(page.facts)
