"""The site's navigation as a template tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template

from ioportal.web import navigation
from ioportal.web.cases import inbox

if TYPE_CHECKING:
    from django.template import RequestContext

register = template.Library()


@register.inclusion_tag("common/navigation.html", takes_context=True)
def site_navigation(context: RequestContext) -> dict[str, Any]:
    """Show the sections, and the pages of the section that contains the current page."""
    user, key = context["user"], context.get("section", "")
    sections = list(navigation.sections(user))
    return {
        "sections": sections,
        "current": next((section for section in sections if key in section.keys), None),
        "key": key,
        "cases_key": navigation.CASES,
        "cases_to_triage": inbox.to_triage() if user.is_staff else "",
    }
