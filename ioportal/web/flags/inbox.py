"""Flags on pages: rule and subject, measure and threshold, and the list of a URL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import django_filters as filters
from django.contrib.auth import get_user_model
from django.core.paginator import Paginator
from django.db.models import Case, Count, Exists, OuterRef, Q, Value, When
from django.urls import reverse

from ioportal.activity import impact
from ioportal.analysis.rules import RULES
from ioportal.analysis.rules.rule import Subject
from ioportal.flags import impact_windows
from ioportal.flags.models import Flag
from ioportal.jobs.models import Job
from ioportal.reporting.flag_values import in_words, unit_of
from ioportal.reporting.principals import Name, named
from ioportal.site.models import Cluster, Filesystem
from ioportal.studies.filters import ValuesFilter, split_values
from ioportal.telemetry.models import Principal
from ioportal.web.common.pagination import COUNTED, Concatenated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from django.contrib.auth.models import User
    from django.core.paginator import Page
    from django.db.models import QuerySet
    from django.http import QueryDict

    from ioportal.activity.top_consumers import Who
    from ioportal.flags.models import FlagQuerySet

PER_PAGE = 40
ME, NOBODY, ALL = "me", "nobody", "all"
_State = Flag.State
_TO_TRIAGE = (_State.OPEN, _State.ACKNOWLEDGED)
_ROWS_AT_ONCE = 2_000
_MANY = 99  # waiting for somebody: more are not counted


def staff() -> QuerySet[User]:
    """Those who may be assigned a flag."""
    return get_user_model().objects.filter(is_staff=True, is_active=True).order_by("username")


def to_triage() -> str:
    """Return how many flags wait for somebody, in words, up to a threshold; "" for none."""
    count = Flag.objects.to_triage().order_by()[: _MANY + 1].count()
    return f"{_MANY}+" if count > _MANY else f"{count or ''}"


def principal_of(flag: Flag) -> Who | None:
    """Return whom of those who send requests a flag is about; None: it is about no single one."""
    if flag.job_id:
        return int(Principal.JOB), flag.job_id
    if flag.subject_kind == Subject.HOST:
        return impact.who(flag.subject)
    return None


def about(whose: Iterable[Who]) -> Q:
    """Say which flags are about some of those who send requests."""
    listed = list(whose)
    jobs = [key for kind, key in listed if kind == Principal.JOB]
    hosts = [f"{kind}:{key}" for kind, key in listed if kind != Principal.JOB]
    return Q(job__in=jobs) | Q(subject_kind=Subject.HOST, subject__in=hosts)


@dataclass(frozen=True)
class Shown:
    """A flag, what its subject is called, and how long it made others wait a moment ago."""

    flag: Flag
    subject: Name
    harm_s: float | None = None

    @property
    def address(self) -> str:
        """Where its page is."""
        return reverse("flag", args=[self.flag.pk])

    @property
    def value(self) -> str:
        """Its measure, in words."""
        return in_words(self.flag, self.flag.measure, self.flag.value)

    @property
    def threshold(self) -> str:
        """What the measure was held against, in words."""
        return in_words(self.flag, self.flag.measure, self.flag.threshold)

    @property
    def times(self) -> float | None:
        """How many times its threshold the measure is."""
        return self.flag.value / self.flag.threshold if self.flag.threshold else None

    @property
    def runs(self) -> bool:
        """Whether its job still does."""
        job = self.flag.job
        return bool(job and job.started_at and not job.ended_at)


def is_simulated(flag: Flag) -> bool:
    """Whether a flag, fetched `with_subjects`, is about something made up."""
    found: Any = flag
    return found.is_of_simulated or any(
        of.simulated for of in (flag.cluster, flag.filesystem) if of
    )


def shown(
    flags: Iterable[Flag], user: User, harming: Mapping[Who, float] | None = None
) -> list[Shown]:
    """Return flags, fetched `with_subjects`, as pages show them."""
    found = list(flags)
    hosts = [who for flag in found if not flag.job_id and (who := principal_of(flag))]
    names = named(hosts, user, "job") if hosts else {}
    harm_of = harming or {}
    rows = []
    for flag in found:
        who = principal_of(flag)
        is_over = flag.state == _State.RESOLVED or (flag.job and flag.job.ended_at)
        rows.append(
            Shown(flag, _name(flag, names), None if is_over or who is None else harm_of.get(who))
        )
    return rows


def with_subjects(flags: FlagQuerySet) -> FlagQuerySet:
    """Fetch besides what a row shows."""
    of_user = Exists(Job.objects.filter(owner=OuterRef("subject"), cluster__simulated=True))
    is_of_user = Q(subject_kind=Subject.USER)
    return flags.select_related("job__cluster", "cluster", "filesystem", "assignee").annotate(
        is_of_simulated=Case(When(is_of_user, then=of_user), default=False)
    )


def worst_first(flags: FlagQuerySet, harming: Mapping[Who, float]) -> FlagQuerySet:
    """Order flags: those who make others wait now, then by severity, then newest first."""
    order = ("-severity", "-until", "-pk")
    if not harming:  # no Case that is true of nobody: ordered by its 1, PostgreSQL takes column 1
        return flags.order_by(*order)
    harms = about(harming) & ~Q(state=_State.RESOLVED)
    return flags.order_by(Case(When(harms, then=Value(0)), default=Value(1)), *order)


def _name(flag: Flag, names: Mapping[Who, Name]) -> Name:
    if flag.job:
        return Name(f"job {flag.job.display_id}", reverse("job", args=[flag.job_id]))
    if flag.subject_kind == Subject.USER:
        return Name(f"user {flag.subject}", reverse("user", args=[flag.subject]))
    if flag.filesystem and flag.subject_kind == Subject.FILESYSTEM:
        return Name(f"filesystem {flag.filesystem.name}")
    who = principal_of(flag)
    return (who and names.get(who)) or Name(f"{flag.subject_kind} {flag.subject}")


def _assignees() -> list[tuple[str, str]]:
    return [(ME, "me"), (NOBODY, "nobody"), *((name, name) for name in _staff_names())]


def _staff_names() -> Iterable[str]:
    return staff().values_list("username", flat=True)


class FlagFilter(filters.FilterSet):  # type: ignore[misc]  # django-filter is untyped
    """Flags by what was found, of whom, where, and by who looks at them; their state is a tab."""

    q = filters.CharFilter(method="find", label="Job, name or user")
    severity = filters.ChoiceFilter(
        choices=list(reversed(Flag.Severity.choices)), label="Severity", empty_label="all"
    )
    rule = filters.ChoiceFilter(
        choices=[(rule.code, rule.title) for rule in RULES], label="Rule", empty_label="all"
    )
    user = ValuesFilter("owner", label="User")
    cluster = filters.ModelChoiceFilter(
        queryset=Cluster.objects.all(), to_field_name="name", label="Cluster", empty_label="all"
    )
    filesystem = filters.ModelChoiceFilter(
        queryset=Filesystem.objects.order_by("name"),
        to_field_name="name",
        label="Filesystem",
        empty_label="all",
    )
    assignee = filters.ChoiceFilter(
        choices=_assignees, method="assigned_to", label="Assignee", empty_label="anybody"
    )

    class Meta:
        model = Flag
        fields: tuple[str, ...] = ()

    def __init__(self, query: QueryDict, user: User) -> None:
        super().__init__(query, queryset=Flag.objects.visible_to(user))
        self._user = user
        if not user.is_staff:
            del self.filters["assignee"]

    def find(self, flags: FlagQuerySet, _name: str, value: str) -> FlagQuerySet:
        """Keep flags of jobs of these ids or of such a name, and of such users."""
        return flags.filter(
            Q(job__batch_id__in=split_values(value))
            | Q(job__name__icontains=value)
            | Q(owner__icontains=value)
        )

    def assigned_to(self, flags: FlagQuerySet, _name: str, value: str) -> FlagQuerySet:
        """Keep flags of an assignee."""
        if value == NOBODY:
            return flags.filter(assignee=None)
        if value == ME:
            return flags.filter(assignee=self._user)
        return flags.filter(assignee__username=value)


@dataclass(frozen=True)
class Tab:
    """Flags in some states: how many, and where they are listed."""

    title: str
    count: int
    url: str
    is_chosen: bool


class Inbox:
    """The flags that the URL asks for, worst first."""

    def __init__(self, user: User, query: QueryDict) -> None:
        self._user = user
        self._query = query
        self.filter = FlagFilter(query, user)
        self.state = query.get("state", "")

    @property
    def errors(self) -> dict[str, list[str]]:
        """What of the query was not understood, by parameter."""
        unknown = (
            {} if self.state in self._states else {"state": [f"{self.state[:64]!r} is no state."]}
        )
        return {**self.filter.errors, **unknown}

    @property
    def _states(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """The tabs: their titles, and what they list."""
        told = [state for state in _State if self._user.is_staff or state != _State.SUPPRESSED]
        return {
            "": ("To triage" if self._user.is_staff else "Current", _TO_TRIAGE),
            **{state: (state.label.capitalize(), (state,)) for state in told},
            ALL: ("All", tuple(told)),
        }

    @cached_property
    def _filtered(self) -> FlagQuerySet:
        """The flags in all states; none where something was not understood."""
        flags: FlagQuerySet = self.filter.queryset.none() if self.errors else self.filter.qs
        return flags

    @cached_property
    def _counts(self) -> dict[str, int]:
        rows = self._filtered.order_by().values_list("state")
        return dict(rows.annotate(count=Count("pk")))

    @property
    def tabs(self) -> Iterator[Tab]:
        """Every choice of states."""
        for name, (title, states) in self._states.items():
            count = sum(self._counts.get(state, 0) for state in states)
            yield Tab(title, count, self.url(state=name), name == self.state)

    @cached_property
    def harming(self) -> dict[Who, float]:
        """Who makes others wait now."""
        return impact_windows.latest()

    @property
    def _chosen(self) -> tuple[str, ...]:
        """The states that the tab lists."""
        _, states = self._states.get(self.state, ("", ()))
        return states

    @property
    def ordered(self) -> FlagQuerySet:
        """The flags of the tab, in order."""
        chosen = self._filtered.filter(state__in=self._chosen)
        return worst_first(with_subjects(chosen), self.harming)

    @cached_property
    def page(self) -> Page[Flag]:
        """The page that the URL names; nonsense means the first, too far the last."""
        total = sum(self._counts.get(state, 0) for state in self._chosen)
        found: Any = Concatenated([self.ordered], min(total, COUNTED))
        return Paginator(found, PER_PAGE).get_page(self._query.get("page"))

    @cached_property
    def rows(self) -> list[Shown]:
        """The page's flags."""
        return shown(self.page.object_list, self._user, self.harming)

    @property
    def is_simulated(self) -> bool:
        """Whether some of the page is made up."""
        return any(is_simulated(row.flag) for row in self.rows)

    @property
    def active_filters(self) -> list[tuple[str, str]]:
        """The filters that the URL sets: their labels and values."""
        return [
            (self.filter.form.fields[name].label, ", ".join(values))
            for name in self.filter.filters
            if (values := [value for value in self._query.getlist(name) if value])
        ]

    @property
    def is_bare(self) -> bool:
        """Whether there is no flag at all, in any state."""
        return not self.active_filters and not any(self._counts.values())

    def url(self, **changes: str) -> str:
        """Return this list's URL with parameters changed, back on its first page."""
        kept = {k: v for k, v in self._query.lists() if k not in {"page", "format", *changes}}
        given = {**kept, **{name: [value] for name, value in changes.items()}}
        parts = {name: [value for value in values if value] for name, values in given.items()}
        return "?" + urlencode(parts, doseq=True)

    def values(self) -> Iterator[list[Any]]:
        """Yield the twins' rows, as `header` has them."""
        names = header(self._user)
        flags = self.ordered[:COUNTED].iterator(_ROWS_AT_ONCE)
        while some := list(islice(flags, PER_PAGE)):
            for row in shown(some, self._user):
                yield [fact(row, name) for name in names]


_FACTS = (
    "id",
    "severity",
    "rule",
    "title",
    "subject_kind",
    "subject",
    "name",
    "job",
    "owner",
    "cluster",
    "filesystem",
    "measure",
    "value",
    "threshold",
    "unit",
    "since",
    "until",
    "state",
    "advice",
    "simulated",
)
_OF_STAFF = ("muted_until", "assignee", "resolved_at", "resolved_by", "resolution")


def header(user: User) -> tuple[str, ...]:
    """Return the names of what twins tell somebody of a flag."""
    return (*_FACTS, *(_OF_STAFF if user.is_staff else ()))


_MADE: dict[str, Callable[[Shown], Any]] = {
    "id": lambda row: row.flag.pk,
    "severity": lambda row: row.flag.get_severity_display(),
    "name": lambda row: row.subject.words,
    "job": lambda row: row.flag.job and row.flag.job.display_id,
    "unit": lambda row: unit_of(row.flag, row.flag.measure),
    "simulated": lambda row: is_simulated(row.flag),
}


def fact(row: Shown, name: str) -> Any:
    """Return what twins say of a flag under a name that never changes."""
    if name in _MADE:
        return _MADE[name](row)
    value = getattr(row.flag, name)
    return str(value) if name in {"cluster", "filesystem", "assignee"} and value else value
