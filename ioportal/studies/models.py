"""Populations that people gave a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.text import slugify

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class PopulationQuerySet(models.QuerySet["Population"]):
    """Questions about named populations."""

    def visible_to(self, user: User) -> Self:
        """Populations whose name and filters `user` may read: one's own and shared ones."""
        return self if user.is_staff else self.filter(Q(owner=user) | Q(is_shared=True))


class Population(models.Model):
    """A name for filters of jobs. Whoever opens it sees those of the jobs that they may see."""

    # Last parts of addresses that mean something else, and what `beside` means by itself.
    RESERVED_SLUGS = frozenset({"other-metrics", "histograms", "others"})

    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=90, unique=True, editable=False)
    query = models.TextField(blank=True)  # parameters of JobFilter, as in an address
    # None: who named it is gone, and staff take care of it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="populations"
    )
    is_shared = models.BooleanField("shared", default=False)

    objects = PopulationQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name

    def may_be_edited_by(self, user: User) -> bool:
        """Whether `user` may change or delete it."""
        return user.is_staff or self.owner_id == user.pk

    def choose_slug(self) -> None:
        """Give it an address after its name, with a number where that one is taken."""
        base = slugify(self.name) or "population"
        taken = set(Population.objects.filter(slug__startswith=base).values_list("slug", flat=True))
        taken |= self.RESERVED_SLUGS
        number = 1
        self.slug = base
        while self.slug in taken:
            number += 1
            self.slug = f"{base}-{number}"


class CacheEntry(models.Model):
    """The table of Django's cache: what took long to compute, until its data changes."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.cache_key
