"""Filters and tags for values: readable text, exact value as title."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil, floor
from typing import TYPE_CHECKING

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from ioportal.core import formatting, visible_text
from ioportal.core.charts import palette
from ioportal.core.time_fields import TimeInput
from ioportal.core.units import Unit
from ioportal.jobs.analysis import anonymity
from ioportal.web.common.requests import changed_query

if TYPE_CHECKING:
    from django.template import RequestContext

    from ioportal.findings.models import Flag

register = template.Library()

_UNKNOWN = SafeString(f'<span class="unknown" title="unknown">{formatting.UNKNOWN}</span>')


@register.filter
def when(moment: datetime | None) -> SafeString:
    """Show a time in the site's zone, with UTC as title."""
    if moment is None:
        return _UNKNOWN
    return _time(moment, "%Y-%m-%d %H:%M:%S")


@register.filter
def minute(moment: datetime) -> SafeString:
    """Show a time without seconds."""
    return _time(moment, "%Y-%m-%d %H:%M")


def _time(moment: datetime, form: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        _utc(moment),
        f"{timezone.localtime(moment):{form}}",
    )


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@register.simple_tag
def time_input(name: str, moment: datetime | None, **attributes: str) -> SafeString:
    """Show an input for a time of a range."""
    return TimeInput(attributes).render(name, moment)


@register.filter
def age(moment: datetime) -> str:
    """Show the age of a time: '2 minutes', '8 years'."""
    return timesince(moment, timezone.now(), depth=1)


@register.filter
def ago(moment: datetime | None) -> str:
    """Show the age of a time, with UTC as title; "" without a time."""
    if moment is None:
        return ""
    return format_html('<span title="{}">{} ago</span>', _utc(moment), age(moment))


@register.filter
def whole(count: float | None) -> str:
    """Show a count with thousands separators."""
    return formatting.UNKNOWN if count is None else f"{count:,.0f}"


@register.filter
def visible(text: str) -> str:
    """Show untrusted text with visible control characters."""
    return visible_text.visible(text)


@register.filter
def clipped(text: str) -> SafeString:
    """Show untrusted text on a line of limited length."""
    return format_html('<span class="text" title="{0}">{0}</span>', visible_text.visible(text))


@register.filter
def code(text: str) -> SafeString:
    """Show untrusted text as code."""
    return format_html("<code>{}</code>", visible_text.visible(text))


@register.filter
def visible_lines(text: str) -> SafeString:
    """Show untrusted text with its line breaks."""
    lines = ((visible_text.visible(line),) for line in text.splitlines())
    return format_html_join(SafeString("<br>"), "{}", lines)


@register.filter
def plain(text: str) -> str:
    """Show untrusted text with its line breaks, without markup."""
    return "\n".join(map(visible_text.visible, text.split("\n")))


@register.filter
def percent(share: float) -> str:
    """Show a share as a whole percentage."""
    return formatting.percent(share, decimals=0)


@register.filter
def percent_down(share: float) -> int:
    """Show a share as a whole percentage, rounded down as in `analysis.quality`: of known data."""
    return floor(100 * share)


@register.filter
def percent_up(share: float) -> int:
    """Show a share as a whole percentage, rounded up: of data that may be wrong."""
    return ceil(100 * share)


@register.filter
def bar_width(share: float) -> str:
    """Return the width of a share in a bar of length 100."""
    return f"{100 * share:.1f}"


@register.simple_tag
def measure(value: float | None, unit: Unit, *, alone: bool = False) -> SafeString:
    """Show a value with exact title; rates outside of tables (`alone`) get '/s'."""
    if value is None:
        return _UNKNOWN
    is_rate = unit in {Unit.PER_SECOND, Unit.RPCS_PER_SECOND}
    return format_html(
        '<data value="{}" title="{}">{}{}</data>',
        value,
        formatting.exact(value, unit),
        formatting.human(value, unit),
        " /s" if alone and is_rate else "",
    )


@register.simple_tag
def flag_mark(flag: Flag) -> SafeString:
    """Show the severity of a flag as a link to it."""
    severity = flag.get_severity_display()
    return format_html(
        '<a class="badge severity-{}" href="{}" title="{}">{}</a>',
        severity,
        reverse("flag", args=[flag.pk]),
        f"{flag.title} ({flag.case.get_state_display()})",
        severity,
    )


@register.simple_tag
def badge(kind: str, text: str) -> SafeString:
    """Show a state or quality as text with a colour."""
    return format_html('<span class="badge {}">{}</span>', kind, text)


def arm(name: str, look: int) -> SafeString:
    """Show the name of an arm with its colour."""
    return format_html(
        '<span class="arm"><span class="key series-{}"></span>{}</span>',
        look,
        visible_text.visible(name),
    )


@register.simple_tag
def swatch(token: str) -> SafeString:
    """Show the colour of a palette token; scripts assign colours to principals."""
    is_principal = token.startswith(palette.PRINCIPAL)
    return format_html(
        '<svg class="swatch" viewBox="0 0 1 1" aria-hidden="true">'
        '<rect width="1" height="1" fill="var({})"{}/></svg>',
        palette.REST if is_principal else token,
        format_html(' data-principal="{}"', token.removeprefix(palette.PRINCIPAL))
        if is_principal
        else "",
    )


@register.simple_tag(takes_context=True)
def same_page(context: RequestContext, **changes: object) -> str:
    """Return this page's query with changed parameters; None removes one."""
    return changed_query(context["request"].GET, **changes)


@register.filter
def as_format(address: str, form: str) -> str:
    """Return the address, query included, of an export in a format."""
    return f"{address}{'' if address.endswith('?') else '&'}format={form}"


@register.filter
def rate(value: float | None) -> str:
    """Show a rate with two decimals, like the RPC report."""
    return formatting.UNKNOWN if value is None else f"{value:,.2f}"


@register.filter
def round_us(value: float) -> str:
    """Show a mean in whole microseconds, like the RPC report."""
    return f"{round(value):,}"


@register.filter
def microseconds(value: float | None) -> str:
    """Show microseconds as µs, ms or s."""
    return formatting.UNKNOWN if value is None else formatting.microseconds(value)


@register.filter
def significant(value: float | None) -> str:
    """Show a number in about three significant digits."""
    return formatting.UNKNOWN if value is None else formatting.significant(value)


@register.filter
def times(value: float | None) -> str:
    """Show a multiple of a usual value."""
    return formatting.UNKNOWN if value is None else formatting.times(value)


@register.simple_tag
def exact_cells(values: list[float | None]) -> SafeString:
    """Show numbers as table cells; faster than a template loop for thousands."""
    cells = ((value, significant(value)) for value in values)
    return format_html_join("", '<td class="numeric" title="{}">{}</td>', cells)


@register.simple_tag
def rule_of_hidden_jobs() -> str:
    """Return which figures of other users' jobs are shown."""
    return anonymity.HIDDEN


@register.filter
def waiting(seconds: float | None) -> str:
    """Show seconds of waiting."""
    return formatting.UNKNOWN if seconds is None else formatting.waiting(seconds)


@register.filter
def size(value: float | None) -> str:
    """Show bytes in kB, MB, GB."""
    return formatting.UNKNOWN if value is None else formatting.decimal_bytes(value)


@register.filter
def seconds(value: float) -> str:
    """Show a time span."""
    return formatting.duration(value)


_STEADY = 1.25  # within this factor of the mean


@register.simple_tag
def trend(factor: float | None) -> SafeString:
    """Show a ratio to the mean with a trend mark."""
    if factor is None:
        return _UNKNOWN
    direction, mark = (
        ("rising", "▲")
        if factor > _STEADY
        else ("falling", "▼")
        if factor < 1 / _STEADY
        else ("steady", "●")
    )
    return format_html(
        '{} <span class="trend {}" role="img" aria-label="{}">{}</span>',
        formatting.significant(factor),
        direction,
        direction,
        mark,
    )


@register.simple_tag
def strip_x(rank: float) -> str:
    """Return the position of a rank's mark on a strip of length 100."""
    return f"{min(98.6, max(0.0, 100 * rank - 0.7)):.1f}"


@register.filter
def hundredfold(part: float | None) -> str:
    """Show a share as a percentage without sign."""
    return formatting.UNKNOWN if part is None else formatting.percent(part)


@register.filter
def work_share(part: float | None) -> str:
    """Show a share of a server's work as a percentage without sign."""
    return formatting.UNKNOWN if part is None else formatting.work_share(part)


@register.filter
def file_name(path: str) -> str:
    """Show the last part of a path with visible control characters."""
    return visible_text.visible(path.rsplit("/", 1)[-1])
