"""Quotas of what experiments store as files: attachments, and uploads that are not loaded yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce

from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.experiments.models import Attachment, Experiment, Upload, UploadFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

_GB = 10**9


@dataclass(frozen=True)
class Quota:
    """The quota of a user or project, and its use."""

    holder: str  # in words
    setting: str
    limit_bytes: int
    used_bytes: int

    def refusal(self, size_bytes: int) -> str:
        """Return why a file is not stored; "" if it fits."""
        if self.used_bytes + size_bytes <= self.limit_bytes:
            return ""
        return (
            f"The quota of {self.holder} is {_size(self.limit_bytes)}, of which "
            f"{_size(self.used_bytes)} are in use. This needs {_size(size_bytes)} more. "
            "Delete attachments, wait until uploads are loaded, or ask an administrator to raise "
            f"{self.setting}."
        )


def for_experiment(experiment: Experiment) -> list[Quota]:
    """Return the quotas that count the files of an experiment: its owner's, and its project's."""
    return _quotas(experiment.owner, [experiment.project] if experiment.project else [])


def for_user(user: User) -> list[Quota]:
    """Return the quota of a user, and those of the user's projects that are in use."""
    own, *projects = _quotas(user, sorted(group.name for group in user.groups.all()))
    return [own, *(quota for quota in projects if quota.used_bytes)]


def refusal(experiment: Experiment, size_bytes: int) -> str:
    """Return why an experiment cannot store another file; "" if its quotas permit it.

    Until the transaction ends, no other one stores a file.
    """
    hold(Lock.QUOTAS)
    refusals = (quota.refusal(size_bytes) for quota in for_experiment(experiment))
    return next(filter(None, refusals), "")


def _quotas(owner: User | None, projects: Iterable[str]) -> list[Quota]:
    """Return the quota of an owner and those of projects, with one query."""
    holders = [
        (
            owner.get_username() if owner else "experiments without an owner",
            "IOPORTAL_USER_QUOTA",
            settings.USER_QUOTA_BYTES,
            Q(owner=owner) if owner else Q(owner=None),
        ),
        *(
            (
                f"project {project}",
                "IOPORTAL_PROJECT_QUOTA",
                settings.PROJECT_QUOTA_BYTES,
                Q(project=project),
            )
            for project in projects
        ),
    ]
    stored = Experiment.objects.order_by().annotate(
        stored=_of_experiment(Attachment.objects.all(), "run__experiment")
        + _of_experiment(
            UploadFile.objects.exclude(upload__state__in=Upload.FINISHED), "upload__experiment"
        )
    )
    used = stored.aggregate(
        **{
            f"holder_{number}": Coalesce(Sum("stored", filter=condition), 0)
            for number, (*_, condition) in enumerate(holders)
        }
    )
    return [
        Quota(holder, setting, limit_bytes, int(used[f"holder_{number}"]))
        for number, (holder, setting, limit_bytes, _) in enumerate(holders)
    ]


def _of_experiment(files: QuerySet[Attachment] | QuerySet[UploadFile], path: str) -> Coalesce:
    """Return the total size of the files of each experiment."""
    total = files.filter(**{path: OuterRef("pk")}).order_by().values(path)
    return Coalesce(Subquery(total.annotate(total=Sum("size_bytes")).values("total")), 0)


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB" if size_bytes >= _GB else f"{size_bytes / 1e6:,.1f} MB"
