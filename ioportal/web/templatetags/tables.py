"""Tags for named values, and for tables without order or exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ioportal.web.common.tables import Table, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.web.common.tables import Column

register = template.Library()


@register.inclusion_tag("common/table.html")
def table(title: str, columns: Sequence[Column[Any]], rows: Sequence[Any]) -> dict[str, Any]:
    """Show rows in columns."""
    return {"table": Table(title, columns, rows)}


@register.simple_tag
def fact(title: str, value: Any, *, css: str = "", is_optional: bool = False) -> SafeString:
    """Show a named value in a list of facts; nothing of an optional one that is unknown."""
    if is_optional and not value:
        return SafeString("")
    return format_html(
        "<div><dt>{}</dt><dd{}>{}</dd></div>",
        title,
        format_html(' class="{}"', css) if css else "",
        value if isinstance(value, SafeString) else text_of(value),
    )
