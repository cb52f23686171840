"""Looks up missing mail addresses before a mail is planned, which holds a lock."""

from __future__ import annotations

from ioportal.findings.models import Case
from ioportal.site import address_command
from ioportal.site.models import Project


def look_up_next() -> int:
    """Look up an owner of a case that needs attention, or a contact; return how many are done."""
    owners = Case.objects.to_triage().exclude(owner="").values_list("owner", flat=True)
    contacts = Project.objects.filter(email="", account__isnull=False).values_list(
        "account__name", flat=True
    )
    return address_command.look_up_next({*owners, *contacts})
