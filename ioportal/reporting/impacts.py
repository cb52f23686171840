"""Rows of the impact of principals and groups of jobs, with their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.activity import job_groups
from ioportal.reporting.principals import BYS, Name, job_group_name, named
from ioportal.telemetry.models import JobGroup, Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import User

    from ioportal.activity.impact_totals import ImpactTotal
    from ioportal.activity.top_consumers import PrincipalKey

_LISTED = 10


@dataclass(frozen=True)
class ImpactRow:
    """The impact of one principal or group of jobs."""

    kind: str
    name: Name
    total: ImpactTotal


def rows(
    totals: Mapping[PrincipalKey, ImpactTotal], user: User, listed: int = _LISTED
) -> list[ImpactRow]:
    """Return the first rows of totals whose names `user` may see: staff, all groups of jobs.

    Args:
        totals: in order.
        user: see `principals.named`.
        listed: the maximum number of rows.
    """
    principals = [key for key in totals if key[0] in Principal.values]
    names = named(principals, user, BYS[0])
    groups = job_groups.by_key(key for kind, key in totals if kind in JobGroup.Kind.values)
    names |= {
        (kind_id, principal_id): job_group_name(kind, text)
        for kind, text, kind_id, principal_id in groups.iter_rows()
    }
    kinds = {**dict(Principal.choices), **dict(JobGroup.Kind.choices)}
    return [
        ImpactRow(kinds[key[0]], names[key], total) for key, total in totals.items() if key in names
    ][:listed]
