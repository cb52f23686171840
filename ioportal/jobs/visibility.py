"""Which jobs a user may see: everybody's own, those of their projects, and for staff all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q, prefetch_related_objects

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


def may_see(user: User | AnonymousUser) -> Q:
    """Return the condition of jobs that a user sees; staff see all jobs."""
    if user.is_staff:
        return Q()
    if user.is_authenticated:
        # Names in the query, not a subquery: the index applies.
        prefetch_related_objects([user], "groups")
    in_projects = Q(project__in=[group.name for group in user.groups.all()])
    return (Q(owner=user.get_username()) | in_projects) & ~Q(owner="")


def visibility_key(user: User) -> str:
    """Return a key that is the same for users who see the same jobs."""
    if user.is_staff:
        return "staff"
    prefetch_related_objects([user], "groups")  # as `may_see`: both use the same groups
    return repr((user.get_username(), sorted(group.name for group in user.groups.all())))
