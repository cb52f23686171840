"""Form fields for times: ISO 8601 text, which every browser shows and accepts alike."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils import timezone
from django.utils.dateparse import parse_datetime

# The range for which records may exist.
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_ATTRIBUTES = {
    "autocomplete": "off",
    "maxlength": 40,
    "pattern": r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+\-]\d{2}:?\d{2})?)?",
    "placeholder": "YYYY-MM-DD hh:mm:ss",
    "size": 19,
    "spellcheck": "false",
    "title": "Date, or date and time, as YYYY-MM-DD hh:mm:ss",
}


class TimeInput(forms.DateTimeInput):
    """A text input for a time in the site's zone; other zones are accepted with their offset.

    The browser's own date input would show times in the order of its language.
    """

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({**_ATTRIBUTES, **(attrs or {})})

    def format_value(self, value: datetime | str | None) -> str:
        """Return a time as text in the site's zone; invalid input is returned unchanged."""
        try:
            moment = parse_datetime(value) if isinstance(value, str) else value
        except ValueError:
            moment = None
        return local_text(moment) if moment else str(value or "")


class TimeField(forms.DateTimeField):
    """A time within the range for which records may exist."""

    widget = TimeInput
    default_validators = [
        MinValueValidator(EARLIEST),
        MaxValueValidator(LATEST),
    ]


def local_text(moment: datetime) -> str:
    """Return a time in the site's zone: '2017-07-06 09:52:55', milliseconds if not zero."""
    try:
        local = timezone.make_naive(moment) if timezone.is_aware(moment) else moment
    except OverflowError:
        local = moment
    return local.isoformat(" ", "milliseconds" if local.microsecond else "seconds")
