"""Forms by which people name populations, share them and change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from ioportal.studies.models import Population
from ioportal.web.populations.descriptions import read

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict


class PopulationForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A name for filters, and whether others may read them."""

    query = forms.CharField(
        label="Jobs",
        required=False,
        strip=True,
        help_text="The address of a job list or of a population, or its filters alone.",
    )

    class Meta:
        model = Population
        fields = ("name", "is_shared")

    def __init__(self, user: User, data: QueryDict | None = None, **options: Any) -> None:
        # The page has a form of filters too, with a name among them.
        super().__init__(data, auto_id="population_%s", **options)
        self._user = user
        self.initial.setdefault("query", self.instance.query)

    def clean_query(self) -> str:
        """Return the filters that an address means."""
        text: str = self.cleaned_data["query"]
        return read(self._user, text).selection.filters if text else ""

    def clean_name(self) -> str:
        """Refuse a name that its owner gave already."""
        name: str = self.cleaned_data["name"]
        same = Population.objects.filter(owner=self.instance.owner or self._user, name=name)
        if same.exclude(pk=self.instance.pk).exists():
            raise ValidationError(f"There is a population {name!r} already.")
        return name

    def save(self, commit: bool = True) -> Population:  # noqa: FBT001, FBT002  (Django's signature)
        """Keep it; a new one gets its address, which never changes, and its owner."""
        population: Population = self.instance
        population.query = self.cleaned_data["query"]
        if not population.pk:
            population.owner = self._user
            population.choose_slug()
        super().save(commit)
        return population
