"""Users, groups and removals of users, in Django's admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User

from ioportal.account.models import Removal
from ioportal.site.admin import StaffAdmin

if TYPE_CHECKING:
    from django.http import HttpRequest


class _BySuperusers(admin.ModelAdmin):
    """Changes by superusers only: who changes users, passwords or groups may become anyone."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow superusers to add."""
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Allow superusers to change."""
        return _is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Allow superusers to delete."""
        return _is_superuser(request)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)


admin.site.unregister([User, Group])


@admin.register(User)
class SiteUserAdmin(_BySuperusers, UserAdmin):
    """User accounts."""


@admin.register(Group)
class SiteGroupAdmin(_BySuperusers, GroupAdmin):
    """Groups: their members see the jobs of projects of the same name."""


@admin.register(Removal)
class RemovalAdmin(StaffAdmin):
    """The record of removals: read only."""

    list_display = ("removed_at", "pseudonym", "reason")

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Refuse: `manage.py user_data remove` adds them."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Removal | None = None) -> bool:
        """Refuse changes."""
        return False
