"""Removals of users, in Django's admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from ioportal.account.models import Removal
from ioportal.site.admin import StaffAdmin

if TYPE_CHECKING:
    from django.http import HttpRequest


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
