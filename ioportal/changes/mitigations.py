"""Writes to the log of mitigations, each with its entry in the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db import transaction

from ioportal.changes.models import Mitigation, MitigationEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_URL = 500  # characters
MAX_NOTES = 20_000
_MAX_LINKS = 20
_is_url = URLValidator(schemes=["http", "https"])


def checked_links(text: str) -> str:
    """Return links, one per line.

    Raises:
        ValidationError: one is not a web address, or there are too many.
    """
    links = text.split()
    if len(links) > _MAX_LINKS:
        raise ValidationError(f"More than {_MAX_LINKS} links.")
    for link in links:
        if len(link) > MAX_URL:
            raise ValidationError(f"{link[:64]!r}… is longer than {MAX_URL} characters.")
        try:
            _is_url(link)
        except ValidationError:
            raise ValidationError(f"{link[:64]!r} is not a web address.") from None
    return "\n".join(links)


@transaction.atomic
def log(mitigation: Mitigation, by: str) -> None:
    """Store a new mitigation."""
    mitigation.save(force_insert=True)
    _record(mitigation, by, f"Logged {mitigation.get_source_display()}.")


@transaction.atomic
def change(mitigation: Mitigation, by: str, fields: Sequence[str]) -> None:
    """Store changes of a mitigation.

    Args:
        mitigation: with its new values.
        by: the user's name.
        fields: labels of the changed fields; none leave it and its history as they are.
    """
    if fields:
        mitigation.save()
        _record(mitigation, by, f"Changed: {', '.join(fields)}.")


def log_once(mitigations: Iterable[Mitigation]) -> None:
    """Store mitigations with keys, without history; existing keys are skipped."""
    Mitigation.objects.bulk_create(mitigations, ignore_conflicts=True)


def _record(mitigation: Mitigation, by: str, text: str) -> None:
    MitigationEvent.objects.create(mitigation=mitigation, by=by, text=text)
