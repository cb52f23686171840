"""The list of mails: filters, pages and exports, as the URL selects them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import django_filters as filters
from django import forms
from django.db.models import Exists, OuterRef, Prefetch, Q
from django.utils import timezone

from ioportal.alerts.models import CaseDecision, Notification, NotificationCase
from ioportal.core.time_fields import TimeField
from ioportal.core.time_ranges import OpenRange
from ioportal.core.times import ALL, RECENT
from ioportal.jobs.job_filters import StrictFilterSet
from ioportal.rules import RULES
from ioportal.site.models import Filesystem
from ioportal.web.common.tables import Column, Table, included, to

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.alerts.models import NotificationQuerySet

_PER_PAGE = 40
_TIME = ("start", "end", "last")
_State = Notification.State
_STATES_OF_USERS = [(state.value, state.label) for state in Notification.SHOWN_TO_USERS]


class MailFilterForm(forms.Form):
    """A form that computes `start` from `last`, and refuses empty ranges."""

    def clean(self) -> dict[str, Any]:
        """Apply `last` if no times are given."""
        values = super().clean() or {}
        start, end, last = (values.get(name) for name in _TIME)
        if last in RECENT and not (start or end):
            now = timezone.now()
            values |= {"start": now - RECENT[last], "end": now}
        elif start and end and start >= end:
            self.add_error("end", "The end of the range must be after its start.")
        return values


class _TimeFilter(filters.Filter):  # type: ignore[misc]  # django-filter is untyped
    field_class = TimeField


class MailFilter(StrictFilterSet):
    """Mails by recipient, words, state, kind, rule, filesystem and time."""

    q = filters.CharFilter(  # shorter texts have no index
        method="search", label="Subject or text contains", min_length=3, max_length=200
    )
    recipient = filters.CharFilter(method="sent_to", label="User or address", max_length=254)
    state = filters.ChoiceFilter(choices=_State.choices, label="State", empty_label="all")
    kind = filters.ChoiceFilter(choices=Notification.Kind.choices, label="Kind", empty_label="all")
    rule = filters.ChoiceFilter(
        choices=[(rule.code, rule.title) for rule in RULES],
        method="about_rule",
        label="Rule",
        empty_label="all",
    )
    filesystem = filters.ModelChoiceFilter(
        queryset=Filesystem.objects.order_by("name"),
        to_field_name="name",
        label="Filesystem",
        empty_label="all",
    )
    start = _TimeFilter("created_at", lookup_expr="gte", label="Written after")
    end = _TimeFilter("created_at", lookup_expr="lt", label="Written before")
    last = filters.ChoiceFilter(
        choices=[(last, last) for last in (*RECENT, ALL)], method="unchanged", label="Last"
    )

    class Meta:
        model = Notification
        form = MailFilterForm
        fields: tuple[str, ...] = ()

    def search(self, mails: NotificationQuerySet, _name: str, value: str) -> NotificationQuerySet:
        """Keep mails whose subject or text contains some words."""
        return mails.filter(Q(subject__icontains=value) | Q(text__icontains=value))

    def sent_to(self, mails: NotificationQuerySet, _name: str, value: str) -> NotificationQuerySet:
        """Keep mails to a user or an address."""
        return mails.filter(Q(recipient=value) | Q(address__iexact=value))

    def about_rule(
        self, mails: NotificationQuerySet, _name: str, value: str
    ) -> NotificationQuerySet:
        """Keep mails about a case of a rule."""
        cases = NotificationCase.objects.filter(notification=OuterRef("pk"), case__rule=value)
        return mails.filter(Exists(cases))

    def unchanged(
        self, mails: NotificationQuerySet, _name: str, _value: str
    ) -> NotificationQuerySet:
        """Leave filtering to `start` and `end`."""
        return mails


class MailList:
    """The mails that the URL selects, the latest first, as far as `user` may see them."""

    def __init__(self, user: User, query: QueryDict) -> None:
        self._user = user
        self._query = query
        self._visible = Notification.objects.visible_to(user)
        self.filter = MailFilter(query, queryset=self._visible)
        if not user.is_staff:
            self.filter.form.fields["state"].choices = [("", "all"), *_STATES_OF_USERS]

    @property
    def errors(self) -> dict[str, list[str]]:
        """Errors of the query, by parameter."""
        return dict(self.filter.errors)

    @property
    def fields(self) -> list[forms.BoundField]:
        """The fields of the filter form, without times."""
        return [field for field in self.filter.form if field.name not in _TIME]

    @property
    def hidden_filters(self) -> list[tuple[str, str]]:
        """Times, as hidden fields of the filter form."""
        return [(name, value) for name in _TIME if (value := self._query.get(name))]

    @property
    def period_errors(self) -> list[str]:
        """Errors of the times."""
        return [error for name in _TIME for error in self.filter.errors.get(name, ())]

    @property
    def is_filtered(self) -> bool:
        """Whether the URL has any filter."""
        return any(self._query.get(name) for name in self.filter.filters)

    @property
    def period(self) -> OpenRange:
        """The time of the mails; unbounded if it is invalid."""
        values = self.filter.form.cleaned_data if self.filter.is_valid() else {}
        start, end = values.get("start"), values.get("end")
        is_selected = self._query.get("start") or self._query.get("end")
        return OpenRange(start, end, "" if is_selected else values.get("last") or ALL)

    @cached_property
    def table(self) -> Table[Notification]:
        """The mails in columns."""
        columns = (*_COLUMNS, *(_STAFF_COLUMNS if self._user.is_staff else ()))
        rows = self.filter.qs.order_by("-created_at", "-pk").defer("text", "html")
        return Table("Mails", columns, rows, query=self._query, per_page=_PER_PAGE)

    @property
    def drafts(self) -> int:
        """The number of drafts, whatever the filters."""
        return self._visible.filter(state=_State.DRAFT).count()

    @property
    def exported(self) -> Table[Notification]:
        """The mails with their texts; of staff with a constant number of queries a slice."""
        rows: Any = self.table.rows
        rows = rows.defer(None)
        if self._user.is_staff:
            decisions = CaseDecision.objects.order_by("pk")
            rows = rows.select_related("filesystem").prefetch_related(
                "delivery_log", "cases__case", Prefetch("cases__case__mail_decisions", decisions)
            )
        return replace(self.table, rows=rows)


def _cases(mail: Notification) -> list[dict[str, Any]]:
    return [
        {
            "case": row.case_id,
            "rule": row.case.rule,
            "rule_version": row.rule_version,
            "value": row.value,
        }
        for row in mail.cases.all()
    ]


def _decisions(mail: Notification) -> list[dict[str, Any]]:
    return [
        {
            "case": row.case_id,
            "at": decision.at,
            "verdict": decision.verdict,
            "reason": decision.reason,
        }
        for row in mail.cases.all()
        for decision in row.case.mail_decisions.all()
    ]


def _delivery_log(mail: Notification) -> list[dict[str, Any]]:
    return [
        {"at": attempt.at, "outcome": attempt.outcome, "response": attempt.response}
        for attempt in mail.delivery_log.all()
    ]


_COLUMNS: tuple[Column[Notification], ...] = (
    Column("", "Subject", "subject", link=to("mail", "pk"), css="wrap"),
    Column("id", ""),
    Column("kind", "Kind", cell="get_kind_display"),
    Column("state", "State", cell=lambda mail: included("mails/_state.html", mail=mail)),
    Column("recipient", "To", cell=lambda mail: mail.recipient or mail.address),
    Column("subject", ""),
    Column("created_at", "Written"),
    Column("finished_at", "Sent or ended"),
)
_STAFF_COLUMNS: tuple[Column[Notification], ...] = (
    Column("filesystem", "", "filesystem__name"),
    *(
        Column[Notification](name, "")
        for name in ("address", "reason", "released_by", "attempts", "text", "html")
    ),
    Column("cases", "", _cases),
    Column("decisions", "", _decisions),
    Column("delivery_log", "", _delivery_log),
)
