"""Saved populations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.text import slugify

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def keep_if_shared(collector: Any, field: Any, rows: models.QuerySet[Any], using: str) -> None:
    """Keep shared populations of a deleted account, without an owner."""
    models.SET_NULL(collector, field, rows.filter(is_shared=True), using)
    models.CASCADE(collector, field, rows.filter(is_shared=False), using)


class PopulationQuerySet(models.QuerySet["Population"]):
    """Queries of saved populations."""

    def visible_to(self, user: User) -> Self:
        """Populations `user` may see: staff see all, others their own and shared populations."""
        return self if user.is_staff else self.filter(Q(owner=user) | Q(is_shared=True))


class Population(models.Model):
    """Saved filters of jobs. Each user sees only those matching jobs that they may see."""

    # Used in addresses of other pages and as values of the parameter `beside`.
    RESERVED_SLUGS = frozenset({"other-metrics", "histograms", "others"})

    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=90, unique=True, editable=False)
    query = models.TextField(blank=True)  # query string of JobFilter
    # None: the owner's account was deleted; staff may edit it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, keep_if_shared, null=True, related_name="populations"
    )
    is_shared = models.BooleanField("shared", default=False)

    objects = PopulationQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name

    def may_be_edited_by(self, user: User) -> bool:
        """Whether `user` may change or delete the population."""
        return user.is_staff or self.owner_id == user.pk

    def choose_slug(self) -> None:
        """Set the slug from the name; a number is added if it is taken."""
        base = slugify(self.name) or "population"
        taken = set(Population.objects.filter(slug__startswith=base).values_list("slug", flat=True))
        taken |= self.RESERVED_SLUGS
        number = 1
        self.slug = base
        while self.slug in taken:
            number += 1
            self.slug = f"{base}-{number}"


class CacheEntry(models.Model):
    """The table of Django's database cache."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.cache_key
