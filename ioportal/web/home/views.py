"""What somebody sees first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_required
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.common.access import staff_only
from ioportal.web.common.requests import asked
from ioportal.web.home.load import HOURS, NewestLoad
from ioportal.web.home.page import JOB_COLUMNS, StaffHome, UserHome

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@login_required
def home(request: UserRequest) -> HttpResponseBase:
    """The site at a glance for staff; their own jobs for others."""
    page: dict[str, Any] = {"section": "home", "columns": JOB_COLUMNS}
    if request.user.is_staff:
        page |= {"home": StaffHome(request.user, asked(request, "hours")), "hours": HOURS}
        return render(request, "home/staff.html", page)
    return render(request, "home/user.html", page | {"home": UserHome(request.user)})


@require_safe
@staff_only
@exports.offered("csv", "json")
def load(request: UserRequest) -> HttpResponseBase:
    """Who loads the metadata servers: the twin of the home page's table."""
    newest = NewestLoad.now(asked(request, "hours"))
    window = newest.window
    seconds = newest.attributed_s
    about = (
        {
            "start": window.start,
            "end": window.end,
            "attributed_s": seconds,
            "pending_s": newest.pending_s,
        }
        if window
        else {}
    )
    rows = (
        [p.kind.label, p.name, p.operations, p.share, p.operations / seconds if seconds else None]
        for p in newest.principals
    )
    header = ["kind", "name", "metadata_operations", "share", "per_second"]
    return exports.twin(request, "metadata-load", about, header, rows)
