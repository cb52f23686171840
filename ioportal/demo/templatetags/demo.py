"""The card of the tour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.conf import settings
from django.urls import reverse
from django.utils.html import format_html

from ioportal.demo import tour
from ioportal.demo.views import DISMISSED

if TYPE_CHECKING:
    from django.template import RequestContext

register = template.Library()


@register.simple_tag
def mailbox_link() -> str:
    """Link to the mailbox of a demo."""
    if not settings.DEMO:
        return ""
    return format_html('<a href="{}">Mailbox of the demo</a>', reverse("mailbox"))


@register.inclusion_tag("demo/tour_card.html", takes_context=True)
def tour_card(context: RequestContext) -> dict[str, Any]:
    """Show the tour in a demo, unless it was dismissed."""
    is_shown = settings.DEMO and DISMISSED not in context["request"].COOKIES
    return {"stops": tour.stops() if is_shown else []}
