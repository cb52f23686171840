"""The form that saves and shares populations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from ioportal.jobs.models import Population
from ioportal.web.populations.references import read

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict


class PopulationForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Name and filters of a population, and whether it is shared."""

    query = forms.CharField(
        label="Jobs",
        required=False,
        strip=True,
        help_text="URL of a job list or population, or only its filters.",
    )

    class Meta:
        model = Population
        fields = ("name", "is_shared")

    def __init__(self, user: User, data: QueryDict | None = None, **options: Any) -> None:
        # The filter form of the page also has a field `name`.
        super().__init__(data, auto_id="population_%s", **options)
        self._user = user
        self.initial.setdefault("query", self.instance.query)

    def clean_query(self) -> str:
        """Return the filters of the text."""
        text: str = self.cleaned_data["query"]
        return read(self._user, text).selection.filters if text else ""

    def clean_name(self) -> str:
        """Reject a name that the owner uses already."""
        name: str = self.cleaned_data["name"]
        same = Population.objects.filter(owner=self.instance.owner or self._user, name=name)
        if same.exclude(pk=self.instance.pk).exists():
            raise ValidationError(f"A population {name!r} exists already. Choose another name.")
        return name

    def save(self, commit: bool = True) -> Population:  # noqa: FBT001, FBT002  (Django's signature)
        """Save; a new population gets its owner and its permanent slug."""
        population: Population = self.instance
        population.query = self.cleaned_data["query"]
        if not population.pk:
            population.owner = self._user
            population.choose_slug()
        super().save(commit)
        return population
