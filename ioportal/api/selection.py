"""Jobs selected by the filters of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.api.problems import invalid

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.jobs.populations.selections import JobKind


def selected(kind: JobKind, user: User, query: QueryDict) -> Any:
    """Return the jobs of a kind that a query selects and a user may see.

    Raises:
        Problem: a filter is invalid.
    """
    filtered = kind.filter_set(query, queryset=kind.visible_to(user))
    for name, errors in filtered.form.errors.items():
        raise invalid(str(name), " ".join(map(str, errors)))
    return filtered.qs
