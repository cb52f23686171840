"""Contacts of users and projects: names and addresses, as far as a user may see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

from ioportal.site.models import Project, UserAccount

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User


@dataclass(frozen=True)
class Contact:
    """How to reach a user of the clusters, or a project."""

    user: str  # or project
    name: str = ""  # of the person or the service; "": not registered
    address: str = ""  # of mail; "": not registered
    projects: str = ""
    registration_url: str = ""  # of the form for the address; "": for staff only


def contacts(names: Iterable[str], viewer: User) -> dict[str, Contact]:
    """Return the contacts of users by user name; users without a visible account are missing.

    Staff also get contacts of users without an account, to register them.
    """
    wanted = {name for name in names if name}
    if not wanted:
        return {}
    visible = UserAccount.objects.visible_to(viewer).filter(name__in=wanted)
    known = {account.name: _contact(account, is_staff=viewer.is_staff) for account in visible}
    if not viewer.is_staff:
        return known
    form = reverse("admin:site_useraccount_add")
    missing = {
        name: Contact(name, registration_url=f"{form}?{urlencode({'name': name})}")
        for name in wanted - known.keys()
    }
    return known | missing


def contact(name: str, viewer: User) -> Contact | None:
    """Return the contact of one user; None: the user has no account that `viewer` may see."""
    return contacts([name], viewer).get(name)


def project_contact(name: str, viewer: User) -> Contact | None:
    """Return the contact of a project; None: none is registered, or `viewer` may not see it.

    Staff also get contacts of projects that are not registered, to register them.
    """
    visible = Project.objects.visible_to(viewer).select_related("account").filter(name=name)
    if project := visible.first():
        form = reverse("admin:site_project_change", args=[project.pk]) if viewer.is_staff else ""
        return Contact(name, project.contact_name, project.address, registration_url=form)
    if not viewer.is_staff:
        return None
    form = reverse("admin:site_project_add")
    return Contact(name, registration_url=f"{form}?{urlencode({'name': name})}")


def _contact(account: UserAccount, *, is_staff: bool) -> Contact:
    form = reverse("admin:site_useraccount_change", args=[account.pk]) if is_staff else ""
    name = f"service account of {account.team}" if account.is_service else account.full_name
    return Contact(account.name, name, account.email, ", ".join(account.projects), form)
