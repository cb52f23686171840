"""A tag for tables without order or exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template

from ioportal.web.common.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.web.common.tables import Column

register = template.Library()


@register.inclusion_tag("common/table.html")
def table(title: str, columns: Sequence[Column[Any]], rows: Sequence[Any]) -> dict[str, Any]:
    """Show rows in columns."""
    return {"table": Table(title, columns, rows)}
