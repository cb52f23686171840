"""Context of all pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from ioportal.web.common import palette

if TYPE_CHECKING:
    from django.http import HttpRequest


def site(_request: HttpRequest) -> dict[str, object]:
    """Return the palette URL and the time zone."""
    return {
        "palette_url": palette.address(),
        "zone_name": timezone.get_current_timezone_name(),
    }
