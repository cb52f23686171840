"""Forms to save and edit incidents, and to report problems."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from ioportal.core.formatting import duration
from ioportal.core.time_fields import TimeField
from ioportal.load.impact.queue_links import LONGEST
from ioportal.load.models import Incident, Report
from ioportal.site.models import Filesystem, Server

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

REPORTS_A_DAY = 20  # of one user
_DAY = timedelta(days=1)
_CLOCK_SKEW = timedelta(minutes=5)


class SaveForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A range of a metadata server; a missing title is filled in."""

    server = forms.ModelChoiceField(
        Server.objects.filter(kind=Server.Kind.MDS), to_field_name="name"
    )
    start = TimeField()
    end = TimeField()

    class Meta:
        model = Incident
        fields = ("title", "server", "start", "end")

    def __init__(self, user: User, data: QueryDict) -> None:
        super().__init__(data)
        self.fields["title"].required = False
        self.instance.saved_by = user.get_username()

    def clean(self) -> dict[str, Any]:
        """Refuse ranges that are too long to analyse, and fill in a missing title."""
        values: dict[str, Any] = super().clean() or {}
        server, start, end = (values.get(name) for name in ("server", "start", "end"))
        if start and end and end - start > LONGEST:
            longest = duration(LONGEST.total_seconds())
            raise ValidationError(
                f"An incident may last at most {longest}. Select a shorter range."
            )
        if server and start and not values.get("title"):
            values["title"] = f"{server} slow, {timezone.localtime(start):%Y-%m-%d %H:%M}"
        return values


class IncidentForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Title and notes of an incident."""

    class Meta:
        model = Incident
        fields = ("title", "notes")
        widgets = {"notes": forms.Textarea({"rows": 5})}


class ReportForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A problem report: filesystem, time and description."""

    filesystem = forms.ModelChoiceField(
        Filesystem.objects.order_by("name"), to_field_name="name", empty_label=None
    )
    at = TimeField(label="Time", initial=timezone.now)

    class Meta:
        model = Report
        fields = ("filesystem", "at", "description")
        widgets = {"description": forms.Textarea({"rows": 2})}

    def __init__(self, user: User, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self._user = user
        self.instance.reporter = user

    def clean_at(self) -> datetime:
        """Refuse times in the future."""
        at: datetime = self.cleaned_data["at"]
        if at > timezone.now() + _CLOCK_SKEW:
            raise ValidationError("The time is in the future.")
        return at

    def clean(self) -> dict[str, Any] | None:
        """Limit the number of reports per user and day."""
        day = Report.objects.filter(reporter=self._user, reported_at__gt=timezone.now() - _DAY)
        if day.count() >= REPORTS_A_DAY:
            raise ValidationError(
                f"You have sent {REPORTS_A_DAY} reports in 24 hours, the maximum. "
                "For urgent problems, contact the help desk."
            )
        return super().clean()
