"""The mail policy, silences, channels and bounced addresses, in Django's admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.forms import model_to_dict

from ioportal.alerts.channel_messages import write_test
from ioportal.alerts.facts import current_policy
from ioportal.alerts.forms import ChannelForm, MailPolicyForm, SilenceForm, initial_modes
from ioportal.alerts.models import BouncedAddress, Channel, MailPolicy, Silence
from ioportal.site.admin import StaffAdmin, is_staff

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest


@admin.register(MailPolicy)
class MailPolicyAdmin(StaffAdmin):
    """Policies are never changed: a new one replaces the latest."""

    form = MailPolicyForm
    list_display = ("set_at", "default_mode", "daily_cap", "hourly_brake", "set_by", "reason")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Begin with the current policy."""
        stored = MailPolicy.objects.first()
        default = {name: value for name, value in vars(current_policy()).items() if value != ()}
        facts = model_to_dict(stored, exclude=["reason"]) if stored else default
        given = super().get_changeform_initial_data(request)
        return {**facts, **initial_modes(facts["modes"]), **given}

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

    form = SilenceForm
    list_display = ("until", "recipient", "rule", "filesystem", "created_by", "reason")

    def has_delete_permission(self, request: HttpRequest, _obj: Any = None) -> bool:
        """Allow staff to delete: mails are sent again."""
        return is_staff(request)

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


@admin.register(Channel)
class ChannelAdmin(StaffAdmin):
    """Channels are disabled, not deleted: notifications refer to them."""

    form = ChannelForm
    list_display = ("name", "kind", "min_severity", "filesystem", "enabled")
    actions = ("send_test",)

    @admin.action(description="Send a test message")
    def send_test(self, request: HttpRequest, channels: QuerySet[Channel]) -> None:
        """Write a test message to each selected channel."""
        for channel in channels:
            write_test(channel)
        self.message_user(request, "The test messages are in the outbox: see Mails.")


@admin.register(BouncedAddress)
class BouncedAddressAdmin(StaffAdmin):
    """Addresses without mails; deletion allows mails again."""

    list_display = ("address", "bounced_at", "reason")
    search_fields = ("address",)

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Refuse additions: only bounces add addresses."""
        return False

    def has_change_permission(
        self, _request: HttpRequest, _obj: BouncedAddress | None = None
    ) -> bool:
        """Refuse changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, _obj: Any = None) -> bool:
        """Allow staff to delete: the address works again."""
        return is_staff(request)
