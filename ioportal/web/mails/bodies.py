"""The HTML of mails and their images, isolated from the portal's pages."""

from __future__ import annotations

from base64 import b64encode
from functools import wraps
from typing import TYPE_CHECKING

from csp.constants import NONE, SELF, UNSAFE_INLINE
from csp.decorators import csp
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from ioportal.alerts import compose
from ioportal.alerts.models import Notification, NotificationImage
from ioportal.web.mails.preview import Preview

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_IN_NEW_TABS = ("<head>", '<head><base target="_blank">')  # a frame shows no other pages
_POLICY = {
    "default-src": [NONE],
    "style-src": [UNSAFE_INLINE],
    "img-src": [SELF, "data:"],
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
    """Return the HTML of a mail, with the addresses of its images."""
    mail = get_object_or_404(Notification.objects.visible_to(request.user), pk=pk)
    names = mail.images.values_list("name", flat=True)
    addresses = {name: reverse("mail_image", args=[pk, name]) for name in names}
    return compose.with_images(mail.html, addresses)


@require_safe
def image(request: UserRequest, pk: int, name: str) -> HttpResponse:
    """Return an image of a mail."""
    mails = Notification.objects.visible_to(request.user)
    found = get_object_or_404(NotificationImage, notification__in=mails.filter(pk=pk), name=name)
    return HttpResponse(bytes(found.png), content_type="image/png")


@isolated
def preview_html(request: UserRequest) -> str:
    """Return the HTML of a mail that was not written, with its images inside."""
    content = Preview(request.user, request.GET).content
    images = {
        name: f"data:image/png;base64,{b64encode(png).decode()}"
        for name, png in content.images.items()
    }
    return compose.with_images(content.html, images)
