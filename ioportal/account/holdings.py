"""Where the portal holds a user's name: one table for the export and the removal of a user.

A test compares it with the columns of all models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db.models import Q

from ioportal.rules.rule import Subject
from ioportal.telemetry.models import JobGroup

if TYPE_CHECKING:
    from django.db.models import QuerySet

_OF_USER = (Subject.USER, Subject.APPLICATION)
_GROUP_SEPARATOR = ":"  # between user and name of an application, as in `load.impact.job_groups`


@dataclass(frozen=True)
class NameColumn:
    """A column with user names.

    Args:
        table: label of the model.
        column: its name.
        only: condition of rows that name users; other rows have other texts.
        has_applications: whether texts such as "alice:relax" name users, too.
    """

    table: str
    column: str
    only: Q = field(default_factory=Q)
    has_applications: bool = False

    def rows(self, name: str) -> QuerySet[Any]:
        """Return the rows that name a user."""
        condition = Q(**{self.column: name})
        if self.has_applications:
            condition |= Q(**{f"{self.column}__startswith": f"{name}{_GROUP_SEPARATOR}"})
        return rows(self.table).filter(condition, self.only)


@dataclass(frozen=True)
class Section:
    """Rows about a user that an export contains completely.

    Args:
        title: key in the export.
        table: label of the model.
        path: look-up of the user's name.
        hidden: columns that are secrets, or of the portal only.
    """

    title: str
    table: str
    path: str
    hidden: tuple[str, ...] = ()

    def rows(self, name: str) -> QuerySet[Any]:
        """Return the rows about a user."""
        return rows(self.table).filter(**{self.path: name})

    def contents(self, name: str) -> list[dict[str, Any]]:
        """Return the rows about a user with their columns."""
        columns = [
            field.attname
            for field in apps.get_model(self.table)._meta.concrete_fields  # noqa: SLF001  (documented)
            if field.attname not in self.hidden
        ]
        return list(self.rows(name).order_by("pk").values(*columns))


def rows(table: str) -> QuerySet[Any]:
    """Return all rows of a table."""
    everything: QuerySet[Any] = apps.get_model(table)._default_manager.all()  # noqa: SLF001  (documented)
    return everything


SECTIONS = (
    Section("account", "site.UserAccount", "name"),
    Section("contact_of_projects", "site.Project", "account__name"),
    Section("log_in", "auth.User", "username", ("password",)),
    Section("tokens", "api.Token", "user__username", ("digest",)),
    Section("made_tokens", "api.Token", "maker__username", ("digest",)),
    Section("requested_mails", "alerts.Subscription", "user__username"),
    Section("mails", "alerts.Notification", "recipient", ("token", "claim")),
    Section("delivery_log", "alerts.DeliveryAttempt", "notification__recipient"),
    Section("answers", "alerts.Answer", "notification__recipient"),
    Section("cases", "findings.Case", "owner"),
    Section("notes_about_cases", "findings.CaseEvent", "case__owner"),
    Section("decisions_about_mails", "alerts.CaseDecision", "case__owner"),
    Section("silences", "alerts.Silence", "recipient"),
    Section("problem_reports", "load.Report", "reporter__username"),
    Section("populations", "jobs.Population", "owner__username"),
    Section("experiments", "experiments.Experiment", "owner__username", ("share_key",)),
    Section("uploads", "experiments.Upload", "owner__username"),
)
NAME_COLUMNS = (
    NameColumn("jobs.Job", "owner"),
    NameColumn("ingest.OwnerConflict", "reported_owner"),
    NameColumn("jobs.WorkloadJob", "user"),
    NameColumn(
        "telemetry.JobGroup",
        "text",
        Q(kind__in=[JobGroup.Kind.USER, JobGroup.Kind.APPLICATION]),
        has_applications=True,
    ),
    NameColumn("findings.Flag", "owner"),
    NameColumn("findings.Flag", "subject", Q(subject_kind__in=_OF_USER), has_applications=True),
    NameColumn("findings.Case", "owner"),
    NameColumn(
        "findings.Case",
        "subject",
        Q(subject_kind__in=[Subject.JOB, *_OF_USER]),
        has_applications=True,
    ),
    NameColumn("findings.Case", "resolved_by"),
    NameColumn("findings.CaseEvent", "by"),
    NameColumn("findings.ThresholdSet", "set_by"),
    NameColumn("findings.BackTest", "requested_by"),
    NameColumn("ingest.Stream", "discarded_by"),
    NameColumn("load.Incident", "saved_by"),
    NameColumn("load.PinnedBaseline", "pinned_by"),
    NameColumn("changes.Mitigation", "made_by"),
    NameColumn("changes.MitigationEvent", "by"),
    NameColumn("changes.DismissedChange", "by"),
    NameColumn("alerts.Notification", "recipient"),
    NameColumn("alerts.Notification", "requested_by"),
    NameColumn("alerts.Notification", "released_by"),
    NameColumn("alerts.Silence", "recipient"),
    NameColumn("alerts.Silence", "created_by"),
    NameColumn("alerts.MailPolicy", "set_by"),
    NameColumn("auth.User", "username"),
    NameColumn("admin.LogEntry", "object_repr", Q(content_type__model__in=["user", "useraccount"])),
)
