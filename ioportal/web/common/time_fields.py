"""Times that people type."""

from __future__ import annotations

from datetime import UTC, datetime

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator


class Moment(forms.DateTimeField):
    """A time of which there may be records, and by which one may reckon."""

    default_validators = [
        MinValueValidator(datetime(1970, 1, 1, tzinfo=UTC)),
        MaxValueValidator(datetime(2200, 1, 1, tzinfo=UTC)),
    ]
