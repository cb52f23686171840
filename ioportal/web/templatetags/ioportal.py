"""How values stand in pages: readable, with the exact value in a title."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor
from typing import TYPE_CHECKING, Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from ioportal import display
from ioportal.analysis.metrics import Unit
from ioportal.charts import palette
from ioportal.reporting import formatting

if TYPE_CHECKING:
    from django.template import RequestContext

    from ioportal.flags.models import Flag
    from ioportal.jobs.models import Job
    from ioportal.web.jobs.columns import Column
    from ioportal.web.people.page import Column as SumColumn

register = template.Library()

_UNKNOWN = SafeString(f'<span class="unknown" title="not known">{formatting.UNKNOWN}</span>')


@register.filter
def when(moment: datetime | None) -> SafeString:
    """Show a moment in the site's zone, with UTC in the title."""
    if moment is None:
        return _UNKNOWN
    return _time(moment, "%Y-%m-%d %H:%M:%S")


def _time(moment: datetime, form: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
        f"{timezone.localtime(moment):{form}}",
    )


@register.filter
def age(moment: datetime) -> str:
    """Show how long ago a moment was: '2 minutes', '8 years'."""
    return timesince(moment, depth=1)


@register.filter
def whole(count: float | None) -> str:
    """Show a count with its thousands apart."""
    return formatting.UNKNOWN if count is None else f"{count:,.0f}"


@register.filter
def visible(text: str) -> str:
    """Show hostile text with its control characters made visible."""
    return display.visible(text)


@register.filter
def said(text: str) -> SafeString:
    """Show what people typed: hostile, but with its lines."""
    lines = ((display.visible(line),) for line in text.splitlines())
    return format_html_join(SafeString("<br>"), "{}", lines)


@register.filter
def plain(text: str) -> str:
    """Show what people typed, with its lines, where no markup can stand."""
    return "\n".join(map(display.visible, text.split("\n")))


@register.filter
def percent(share: float) -> int:
    """Show a share as a whole percentage, never rounded up."""
    return floor(100 * share)


@register.simple_tag
def measure(value: float | None, unit: Unit, *, alone: bool = False) -> SafeString:
    """Show a value of a unit; one that stands alone, without a head, says '/s' itself."""
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
def cell(column: Column, job: Job) -> SafeString | str:
    """Show what a column of the job list says about a job."""
    value = column.of(job)
    if column.name == "job":
        link = format_html('<a href="{}">{}</a>', reverse("job", args=[job.pk]), value)
        worst = getattr(job, "worst_flag", None)
        return format_html("{} {}", link, flag_mark(worst)) if worst else link
    if column.unit is not None:
        return measure(value, column.unit)
    if isinstance(value, datetime):
        return _time(value, "%Y-%m-%d %H:%M")
    if column.name == "state":
        return badge(job.state, job.get_state_display())
    if column.name == "quality":
        return badge(str(value), str(value)) if value else _UNKNOWN
    text = display.visible(str(value or ""))
    return format_html('<span class="text" title="{0}">{0}</span>', text) if text else _UNKNOWN


@register.simple_tag
def flag_mark(flag: Flag) -> SafeString:
    """Show beside a name that it is flagged, how severely, and the way there."""
    severity = flag.get_severity_display()
    return format_html(
        '<a class="badge severity-{}" href="{}" title="{}">{}</a>',
        severity,
        reverse("flag", args=[flag.pk]),
        f"{flag.title} ({flag.get_state_display()})",
        severity,
    )


@register.simple_tag
def sum_of(column: SumColumn, value: Any, job: Job | None = None) -> SafeString | str:
    """Show a figure of somebody's jobs; with `job`, the one that it leads to."""
    if value is None:
        return _UNKNOWN
    if isinstance(value, datetime):
        return _time(value, "%Y-%m-%d %H:%M")
    if column.unit is None:
        return whole(value) if isinstance(value, int) else formatting.significant(value)
    shown = measure(value, column.unit)
    if job is None:
        return shown
    address, title = reverse("job", args=[job.pk]), f"job {job.display_id}"
    return format_html('<a href="{}" title="{}">{}</a>', address, title, shown)


@register.simple_tag
def badge(kind: str, text: str) -> SafeString:
    """Show a state or quality: its colour is never its only sign."""
    return format_html('<span class="badge {}">{}</span>', kind, text)


@register.simple_tag
def swatch(token: str) -> SafeString:
    """Show the colour of a token of the palette; the browser gives principals theirs."""
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
    """Return this page's query with parameters changed; None removes one."""
    query = context["request"].GET.copy()
    for name in ("page", "format", *changes):
        query.pop(name, None)
    for name, value in changes.items():
        if value is not None:
            query[name] = str(value)
    return f"?{query.urlencode()}"


@register.filter
def twin(address: str, form: str) -> str:
    """Return the address, query included, of a twin in a format."""
    return f"{address}{'' if address.endswith('?') else '&'}format={form}"


@register.simple_tag
def share(part: int, whole_count: int) -> str:
    """Show a part of a whole in percent."""
    return formatting.significant(100 * part / whole_count) if whole_count else formatting.UNKNOWN


@register.filter
def rate(value: float | None) -> str:
    """Show a rate with two decimals, as the RPC report does."""
    return formatting.UNKNOWN if value is None else f"{value:,.2f}"


@register.filter
def round_us(value: float) -> str:
    """Show a mean in whole microseconds, as the RPC report does."""
    return f"{round(value):,}"


@register.filter
def significant(value: float | None) -> str:
    """Show a number in about three significant digits."""
    return formatting.UNKNOWN if value is None else formatting.significant(value)


@register.simple_tag
def exact_cells(values: list[float | None]) -> SafeString:
    """Show numbers as cells of a table; thousands, as a loop of a template would be slow."""
    cells = ((value, significant(value)) for value in values)
    return format_html_join("", '<td class="numeric" title="{}">{}</td>', cells)


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
    """Show how many times the mean something is, and which way it goes, for eyes and readers."""
    if factor is None:
        return _UNKNOWN
    kind, mark, words = (
        ("rising", "▲", "rising")
        if factor > _STEADY
        else ("falling", "▼", "falling")
        if factor < 1 / _STEADY
        else ("steady", "●", "steady")
    )
    return format_html(
        '{} <span class="trend {}" role="img" aria-label="{}">{}</span>',
        formatting.significant(factor),
        kind,
        words,
        mark,
    )


@register.simple_tag
def strip_x(rank: float) -> str:
    """Return where a rank's mark begins on a strip of 100."""
    return f"{min(98.6, max(0.0, 100 * rank - 0.7)):.1f}"


@register.filter
def hundredfold(part: float) -> str:
    """Show a share as a percentage without its sign, never rounded up to all."""
    return f"{floor(1000 * part) / 10:.1f}"


@register.filter
def file_name(path: str) -> str:
    """Show the last part of a file's name, with its control characters made visible."""
    return display.visible(path.rsplit("/", 1)[-1])
