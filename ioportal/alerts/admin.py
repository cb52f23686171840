"""The mail policy and silences, in Django's admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from ioportal.alerts.models import MailPolicy, Silence
from ioportal.site.admin import StaffAdmin

if TYPE_CHECKING:
    from django.forms import ModelForm
    from django.http import HttpRequest


@admin.register(MailPolicy)
class MailPolicyAdmin(StaffAdmin):
    """Policies are never changed: a new one replaces the latest."""

    list_display = ("set_at", "default_mode", "daily_cap", "hourly_brake", "set_by", "reason")

    def has_change_permission(self, _request: HttpRequest, _obj: MailPolicy | None = None) -> bool:
        """Refuse changes."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: MailPolicy | None = None) -> bool:
        """Refuse deletion: it is the history."""
        return False

    def save_model(
        self,
        request: HttpRequest,
        obj: MailPolicy,
        form: ModelForm[Any],
        change: bool,  # noqa: FBT001  (Django's signature)
    ) -> None:
        """Record who sets it."""
        obj.set_by = request.user.get_username()
        super().save_model(request, obj, form, change)


@admin.register(Silence)
class SilenceAdmin(StaffAdmin):
    """Times without mails."""

    list_display = ("until", "recipient", "rule", "filesystem", "created_by", "reason")

    def save_model(
        self,
        request: HttpRequest,
        obj: Silence,
        form: ModelForm[Any],
        change: bool,  # noqa: FBT001  (Django's signature)
    ) -> None:
        """Record who creates it."""
        obj.created_by = obj.created_by or request.user.get_username()
        super().save_model(request, obj, form, change)
