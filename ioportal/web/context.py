"""What every page knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from ioportal.web.common import palette
from ioportal.web.flags import inbox

if TYPE_CHECKING:
    from django.http import HttpRequest


def site(_request: HttpRequest) -> dict[str, object]:
    """Give the palette's address, the zone of times, and (asked for when shown) what waits."""
    return {
        "flags_to_triage": inbox.to_triage,
        "palette_url": palette.address(),
        "zone_name": timezone.get_current_timezone_name(),
    }
