"""Context of all pages while the demo loads its year."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.demo import progress

if TYPE_CHECKING:
    from django.http import HttpRequest


def loading(request: HttpRequest) -> dict[str, str]:
    """Return the progress, for staff."""
    user = getattr(request, "user", None)  # absent if a middleware responds
    return {"demo_progress": progress.current_text()} if user and user.is_staff else {}
