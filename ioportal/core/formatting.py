"""Numbers as text: readable, and exact. GB is 10**9 bytes, GiB is 2**30 bytes."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from ioportal.core.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

UNKNOWN = "\u2013"  # an en dash

_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SHORT = ("", "k", "M", "G", "T", "P", "E")
_SMALL = 10
_LARGE = 100
_WHOLE_PERCENT = 100
_TENTH = 0.1
_MINUTE_S = 60
_HOUR_S = 3_600
_DAY_S = 86_400
_MOST_TIMES = 1_000
_MS_US = 1_000
_S_US = 1_000_000

# Units in column headings; cells of bytes, times and shares have their own.
SHORT_UNITS = {
    Unit.COUNT: "ops",
    Unit.PER_SECOND: "ops/s",
    Unit.RPCS: "RPCs",
    Unit.RPCS_PER_SECOND: "RPCs/s",
    Unit.BYTES: "bytes",
    Unit.BYTES_PER_SECOND: "bytes/s",
    Unit.SECONDS: "h:min:s",
    Unit.SECONDS_OF_WAITING: "s",
    Unit.MICROSECONDS: "time",
    Unit.NODES: "nodes",
    Unit.CORES: "cores",
    Unit.CORE_HOURS: "core-hours",
    Unit.JOBS: "jobs",
    Unit.REQUESTS: "requests",
    Unit.REQUESTS_PER_SECOND: "requests/s",
    Unit.EVENTS: "events",
    Unit.RATIO: "ratio",
    Unit.TIMES: "times",
    Unit.SHARE: "%",
    Unit.YES_NO: "yes/no",
}


def human(value: float | None, unit: Unit) -> str:
    """Return a value with about three significant digits; counts have all digits."""
    return UNKNOWN if value is None else _WRITE.get(unit, significant)(value)


def with_unit(value: float | None, unit: Unit) -> str:
    """Return a value like `human`, with its unit."""
    text = human(value, unit)
    return text if value is None or unit in _WITH_OWN_UNIT else f"{text} {unit.symbol}"


def threshold(value: float, unit: Unit) -> str:
    """Return a threshold with its unit: a round number, next to a value with the whole unit."""
    if unit is Unit.SECONDS_OF_WAITING:
        return f"{value:,.10g} {unit.symbol}"
    if unit is Unit.SHARE:
        return f"{100 * value:,.10g} %"
    return with_unit(value, unit)


def exact(value: float | None, unit: Unit) -> str:
    """Return an exact value with its unit; bytes also in binary units."""
    if value is None:
        return "unknown"
    full = f"{value:,}" if isinstance(value, int) else f"{value:,.6f}".rstrip("0").rstrip(".")
    if unit is Unit.BYTES:
        return f"{full} bytes = {_scaled(value, 1024, _BINARY)}"
    return full if unit is Unit.RATIO else f"{full} {unit.symbol}"


def significant(value: float, more: int = 0) -> str:
    """Return a number with two decimals below 10, one below 100, none above; and some `more`."""
    if value and abs(value) < 0.01:  # noqa: PLR2004  (two decimals would show zero)
        return f"{Decimal(f'{value:.1g}'):f}"  # without an exponent
    decimals = 2 if abs(value) < _SMALL else 1 if abs(value) < _LARGE else 0
    return f"{value:,.{decimals + more}f}"


def times(value: float) -> str:
    """Return a multiple of a usual value; very large ones depend on its error alone."""
    return f"over {_MOST_TIMES:,}" if value > _MOST_TIMES else significant(value)


def signed(value: float, form: str) -> str:
    """Return a number in a format, with a plus or a true minus sign."""
    return f"{value:+{form}}".replace("-", "\N{MINUS SIGN}")


def lowered(title: str) -> str:
    """Return a title for the middle of a sentence: 'opens', 'CPU efficiency'."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def p_value(p: float) -> str:
    """Return a p-value with three decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"  # noqa: PLR2004  (three decimals)


def waiting(seconds: float) -> str:
    """Return seconds of waiting; below a millisecond, only that they are not zero."""
    return "<0.001" if 0 < seconds < 1 / _MS_US else significant(seconds)


def total_waiting(seconds: float) -> str:
    """Return a sum of waiting in seconds, as on all pages; a long one in a larger unit, too."""
    text, rough = f"{waiting(seconds)} s", rough_duration(seconds)
    return text if rough.endswith("seconds") else f"{text} ({rough})"


def percent(share: float, decimals: int = 1) -> str:
    """Return a share in percent without sign, rounded half up; 0 and 100 only if it is exact."""
    step = Decimal(1).scaleb(-decimals)
    exact_percent = 100 * Decimal(str(share))
    rounded = exact_percent.quantize(step, ROUND_HALF_UP)
    if not rounded and share:
        return f"<{step}"
    if rounded == _WHOLE_PERCENT and share < 1:
        return f">{_WHOLE_PERCENT - step}"
    return f"{rounded:,}"


def work_share(share: float) -> str:
    """Return a share of a server's work in percent without sign, with about two digits."""
    return percent(share, 0 if share >= _TENTH else 1)


def counted(count: int, noun: str) -> str:
    """Return a number of things: '1 job', '2,000 jobs'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def decimal_bytes(value: float) -> str:
    """Return bytes in kB, MB, GB (powers of 1000)."""
    return _scaled(value, 1000, _DECIMAL)


def all_bytes(value: int) -> str:
    """Return bytes in kB, MB, GB with all digits, for bounds."""
    return _all_digits(value, _DECIMAL)


def short(value: int) -> str:
    """Return a count in k, M, G with all digits."""
    return _all_digits(value, _SHORT)


def _all_digits(value: int, names: tuple[str, ...]) -> str:
    power = min((len(str(value)) - 1) // 3, len(names) - 1)
    return f"{Decimal(value).scaleb(-3 * power).normalize():,f} {names[power]}".rstrip()


def _scaled(value: float, base: int, names: tuple[str, ...]) -> str:
    power = 0
    while abs(value) >= base and power < len(names) - 1:
        value /= base
        power += 1
    return f"{significant(value) if power else f'{value:,.0f}'} {names[power]}"


def duration(seconds: float) -> str:
    """Return seconds as [days] h:mm:ss; below one minute, as decimal seconds."""
    if seconds < _MINUTE_S:
        return f"{significant(seconds)} s" if seconds % 1 else f"{seconds:.0f} s"
    days, rest = divmod(round(seconds), _DAY_S)
    hours, rest = divmod(rest, _HOUR_S)
    clock = f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return f"{days} d {clock}" if days else clock


def step_of(width: timedelta) -> str:
    """Return the width of bins as an adjective: '10-second', '5-minute', '2-hour'."""
    seconds = round(width.total_seconds())
    for unit, size in (("hour", _HOUR_S), ("minute", _MINUTE_S)):
        if seconds % size == 0:
            return f"{seconds // size}-{unit}"
    return f"{seconds}-second"


def rough_duration(seconds: float) -> str:
    """Return seconds in words, in the largest unit with a value of at least two."""
    for unit, size in (("days", _DAY_S), ("hours", _HOUR_S), ("minutes", _MINUTE_S)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


def microseconds(value: float) -> str:
    """Return microseconds as µs, ms or s."""
    if value >= _S_US:
        return f"{significant(value / _S_US)} s"
    if value >= _MS_US:
        return f"{significant(value / _MS_US)} ms"
    return f"{round(value):d} µs" if value >= _SMALL else f"{significant(value)} µs"


_WITH_OWN_UNIT = {
    Unit.BYTES,
    Unit.BYTES_PER_SECOND,
    Unit.SECONDS,
    Unit.MICROSECONDS,
    Unit.SHARE,
    Unit.RATIO,
    Unit.YES_NO,
}
_WRITE: dict[Unit, Callable[[float], str]] = {
    Unit.BYTES: decimal_bytes,
    Unit.BYTES_PER_SECOND: lambda value: f"{decimal_bytes(value)}/s",
    Unit.TIMES: times,
    Unit.SECONDS: duration,
    Unit.MICROSECONDS: microseconds,
    Unit.SHARE: lambda value: f"{percent(value)} %",
    Unit.COUNT: lambda value: f"{round(value):,}",
    Unit.RPCS: lambda value: f"{round(value):,}",
    Unit.REQUESTS: lambda value: f"{round(value):,}",
    Unit.EVENTS: lambda value: f"{round(value):,}",
    Unit.JOBS: lambda value: f"{round(value):,}",
    Unit.NODES: lambda value: f"{round(value):,}",
    Unit.CORES: lambda value: f"{round(value):,}",
    Unit.YES_NO: lambda value: "yes" if value else "no",
}
