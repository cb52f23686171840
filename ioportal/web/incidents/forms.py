"""Forms by which staff keep incidents, and users report what they suffer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from ioportal.activity.models import Incident, Report
from ioportal.reporting.formatting import duration
from ioportal.site.models import Filesystem, Server
from ioportal.time_fields import TimeField
from ioportal.web.incidents.page import LONGEST

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

REPORTS_A_DAY = 20  # of one user
_DAY = timedelta(days=1)
_CLOCKS_DIFFER = timedelta(minutes=5)


class KeepForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """An interval of a server; without a title it gets one."""

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
        self.instance.kept_by = user.get_username()

    def clean(self) -> dict[str, Any]:
        """Refuse what is too long to look at, and give it a title."""
        told: dict[str, Any] = super().clean() or {}
        server, start, end = (told.get(name) for name in ("server", "start", "end"))
        if start and end and end - start > LONGEST:
            longest = duration(LONGEST.total_seconds())
            raise ValidationError(f"An incident lasts {longest} at most.")
        if server and start and not told.get("title"):
            told["title"] = f"{server} slow, {timezone.localtime(start):%Y-%m-%d %H:%M}"
        return told


class IncidentForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """What staff say of an incident."""

    class Meta:
        model = Incident
        fields = ("title", "notes")
        widgets = {"notes": forms.Textarea({"rows": 5})}


class ReportForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """What hangs, where and when."""

    filesystem = forms.ModelChoiceField(
        Filesystem.objects.order_by("name"), to_field_name="name", empty_label=None
    )
    at = TimeField(label="When", initial=timezone.now)

    class Meta:
        model = Report
        fields = ("filesystem", "at", "words")
        widgets = {"words": forms.Textarea({"rows": 2})}

    def __init__(self, user: User, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self._user = user
        self.instance.reporter = user

    def clean_at(self) -> datetime:
        """Refuse what is still to come."""
        at: datetime = self.cleaned_data["at"]
        if at > timezone.now() + _CLOCKS_DIFFER:
            raise ValidationError("That time is still to come.")
        return at

    def clean(self) -> dict[str, Any] | None:
        """Refuse more than a person has to say in a day."""
        day = Report.objects.filter(reporter=self._user, reported_at__gt=timezone.now() - _DAY)
        if day.count() >= REPORTS_A_DAY:
            raise ValidationError(
                f"You have sent {REPORTS_A_DAY} reports within a day: please call the centre."
            )
        return super().clean()
