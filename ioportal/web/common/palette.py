"""The chart palette as a stylesheet."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from ioportal.core.charts import palette

if TYPE_CHECKING:
    from django.http import HttpRequest

_STYLESHEET = palette.stylesheet()
_VERSION = sha256(_STYLESHEET.encode()).hexdigest()[:12]
_YEAR_S = 31_536_000


@login_not_required
@require_safe
@cache_control(public=True, immutable=True, max_age=_YEAR_S)
def stylesheet(_request: HttpRequest, version: str) -> HttpResponse:  # noqa: ARG001  (changes the URL)
    """The tokens of `core.charts.palette`; the URL changes with them."""
    return HttpResponse(_STYLESHEET, content_type="text/css")


def address() -> str:
    """Return the URL of the current palette."""
    return reverse("palette", args=[_VERSION])
