"""The HTML of mails, isolated from the portal's pages."""

from __future__ import annotations

from base64 import b64encode
from functools import wraps
from typing import TYPE_CHECKING

from csp.constants import NONE, SELF, UNSAFE_INLINE
from csp.decorators import csp
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from ioportal.alerts import compose
from ioportal.alerts.models import Notification
from ioportal.web.mails.preview import Preview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_IN_NEW_TABS = ("<head>", '<head><base target="_blank">')  # a frame shows no other pages
_POLICY = {
    "default-src": [NONE],
    "style-src": [UNSAFE_INLINE],
    "img-src": ["data:"],
    "form-action": [NONE],
    "frame-ancestors": [SELF],
}


def isolated(view: Callable[..., str]) -> Callable[..., HttpResponseBase]:
    """Let pages of the portal show the HTML that a view returns, in a frame without scripts."""

    @wraps(view)
    def response(*arguments: object, **named: object) -> HttpResponseBase:
        return HttpResponse(view(*arguments, **named).replace(*_IN_NEW_TABS, 1))

    return csp(_POLICY)(xframe_options_sameorigin(require_safe(response)))


@isolated
def html(request: UserRequest, pk: int) -> str:
    """Return the HTML of a mail, with its images inside."""
    mail = get_object_or_404(Notification.objects.visible_to(request.user), pk=pk)
    return _with_images_inside(mail.html, {image.name: image.png for image in mail.images.all()})


@isolated
def preview_html(request: UserRequest) -> str:
    """Return the HTML of a mail that was not written, with its images inside."""
    content = Preview(request.user, request.GET).content
    return _with_images_inside(content.html, content.images)


def _with_images_inside(body: str, images: Mapping[str, bytes | memoryview]) -> str:
    """Return HTML without requests: an isolated frame sends no cookies."""
    addresses = {
        name: f"data:image/png;base64,{b64encode(png).decode()}" for name, png in images.items()
    }
    return compose.with_images(body, addresses)
