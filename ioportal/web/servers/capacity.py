"""The capacity page of a server: how much load it carries, and how much is left."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.urls import reverse

from ioportal.core.formatting import counted, significant
from ioportal.core.time_ranges import TimeRange
from ioportal.load import capacity
from ioportal.load.analysis.capacity import KNEE_FACTOR, Capacity, Refusal, Resampled
from ioportal.load.capacity import Method
from ioportal.load.charts import capacity as charts
from ioportal.rules.capacity import DEFAULT_PER_S
from ioportal.web.common.parts import Part
from ioportal.web.common.tables import Column, by_position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from django.http import QueryDict

    from ioportal.load.analysis.capacity import Estimate
    from ioportal.load.capacity import ServerCapacity
    from ioportal.site.models import Server

CHARTS = ("curve", "load")
_DIGITS = 3  # of rates in sentences
_UNITS = {Method.TRACES: "RPCs/s", Method.STATISTICS: "requests/s"}


class CapacityPage:
    """The capacity of a metadata server in a range."""

    def __init__(self, server: Server, query: QueryDict) -> None:
        self.server = server
        self.errors: list[str] = []
        self._query = query
        self._last: datetime | None = None
        self.window = self._window()
        self._asked = query.get("method", "")

    def _window(self) -> TimeRange | None:
        last = capacity.last_observed(self.server.pk)
        if last is None:
            return None
        self._last = last
        default = TimeRange(*capacity.latest_range(last))
        window, self.errors = TimeRange.or_default(self._query, default)
        return window

    @cached_property
    def methods(self) -> list[Method]:
        """Methods with data in the range, the default first."""
        if self.window is None:
            return []
        return capacity.methods(self.server.pk, self.window.start, self.window.end)

    @property
    def method(self) -> Method | None:
        """The selected method; None: there is no data."""
        return next(
            (method for method in self.methods if method.value == self._asked),
            next(iter(self.methods), None),
        )

    @cached_property
    def found(self) -> ServerCapacity | None:
        """The capacity and its sources; None without data."""
        method, window = self.method, self.window
        if method is None or window is None:
            return None
        start, end = window.start, window.end
        return capacity.cached_of_server(self.server, method, start, end, self._last)

    @property
    def capacity(self) -> Capacity | None:
        """The capacity; None if it is unknown."""
        result = self.found.result if self.found else None
        return result if isinstance(result, Capacity) else None

    @property
    def refusal(self) -> str:
        """The reason why there is no capacity; "": there is one."""
        if self.found is None:
            where = " in this range" if self.window else ""
            return f"No RPC traces or service statistics (mds_stats) of {self.server.name}{where}."
        result = self.found.result
        return result.reason if isinstance(result, Refusal) else ""

    @property
    def unit(self) -> str:
        """Unit of the loads."""
        return _UNITS[self.method] if self.method else ""

    @property
    def verdict(self) -> str:
        """The answer in two sentences."""
        server = self.capacity
        if server is None:
            return ""
        if server.knee:
            answer = (
                f"{self.server.name} carries {self._shown(server.knee.value)} before "
                f"{self._at_knee} as without load."
            )
        else:
            answer = (
                f"Highest steady load seen with normal latency: {self._shown(server.limit.value)}. "
                "At which load requests take longer is unknown."
            )
        return f"{answer} {self._busy(server)}"

    @property
    def _at_knee(self) -> str:
        if self.found and not self.found.has_handling:
            return "requests wait twice as long for a thread"
        kind = "RPCs" if self.method is Method.TRACES else "requests"
        return f"its {kind} take twice as long"

    def _busy(self, server: Capacity) -> str:
        """Return the sentence about busy hours."""
        busy = f"Busy hours have {self._shown(server.busy_load)}"
        if not server.is_busy_load_seen:
            return f"{busy}, for which too few steady windows show the latency."
        left = server.limit.value - server.busy_load
        if server.knee is None:
            return f"{busy}."
        return f"{busy}, so {'nothing is' if left <= 0 else f'{self._shown(left)} are'} left."

    def _shown(self, load: float) -> str:
        """Return a load of the capacity with its unit."""
        cost_s = self.capacity.cost_s if self.capacity else 1.0
        return f"{_rate(load / cost_s)} {self.unit}"

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Labels and values of the capacity."""
        server = self.capacity
        if server is None or self.found is None:
            return []
        safe, above = server.safe, _windows(len(server.slow.load), server.slow.days)
        knee = "not found"
        if server.unconfirmed_knee:
            about = self._shown(server.unconfirmed_knee)
            knee = f"about {about}, unconfirmed: only {above} have more"
        if server.knee:
            scaled = server.knee.scaled(1 / server.cost_s)
            knee = f"{_rate(scaled.value)} {self.unit} ({_interval(scaled)}); {above} have more"
        of_hours = f"95 % of {counted(self.found.hours.height, 'hour')} with data have less"
        return [
            ("Knee", knee),
            (
                "Highest steady load with normal latency",
                f"{self._shown(safe.load)}; {_windows(safe.windows, safe.days)} up to it"
                if safe
                else "unknown",
            ),
            ("Highest load that arrived", self._shown(safe.highest_seen) if safe else "unknown"),
            ("Busy hours", f"{self._shown(server.busy_load)}; {of_hours}"),
            ("Headroom in busy hours", self._headroom(server)),
            ("Served while requests queued", self._in_queues),
            ("Capacity in rules", self.capacity_in_rules),
            ("Cost of a request", f"{significant(server.cost_s * 1e6)} µs"),
        ]

    @property
    def _in_queues(self) -> str:
        """The capacity with which queues are served again."""
        plateau = capacity.in_queues(self.server, self.window.end) if self.window else None
        if plateau is None:
            return "unknown: no queue was traced in the day before the end of this range"
        of_seconds = (
            f"in {counted(plateau.steps, 'second')} of the day before the end of this range"
        )
        return f"{_rate(plateau.requests[0])} requests/s; {of_seconds}"

    @property
    def capacity_in_rules(self) -> str:
        """The capacity with which rules compare loads, and where it is from."""
        registered = self.server.capacity_per_s
        origin = "registered" if registered else "assumed; register capacity_per_s"
        return f"{registered or DEFAULT_PER_S:,} requests/s ({origin})"

    def _headroom(self, server: Capacity) -> str:
        if server.headroom is None:
            return "unknown"
        scaled = server.headroom.scaled(1 / server.cost_s)
        shown = f"{_rate(scaled.value)} {self.unit}"
        if server.knee is None:
            return f"at least {shown} (95 % interval from {_rate(scaled.low)})"
        return f"{shown} ({_interval(scaled)})"

    @property
    def limits(self) -> Iterator[str]:
        """Yield what restricts the answer, in sentences."""
        found, server = self.found, self.capacity
        if found is None or server is None:
            return
        if server.resampled is Resampled.HOURS:
            yield f"All steady windows are of {counted(server.days, 'day')}. Other days may differ."
        if found.upgrade:
            yield f"Only data since the upgrade to {found.upgrade} is used."
        if not found.has_handling:
            yield (
                "This server version does not count handling times (Lustre before 2.14). Latency "
                "is the wait for a thread: service may slow down at lower loads."
            )
        excluded = ", ".join(f"{count:,} ({name})" for name, count in server.excluded.items())
        yield f"{server.windows:,} windows with a steady load are used. Excluded: {excluded}."

    @cached_property
    def charts(self) -> list[Part[Sequence[Any]]]:
        """The charts; none without a capacity."""
        server, found, window = self.capacity, self.found, self.window
        if server is None or found is None or window is None:
            return []
        rate = 1 / server.cost_s
        limit = server.limit.scaled(rate)
        marks = charts.Marks(
            self.unit,
            server.busy_load * rate,
            limit.value,
            server.knee is not None,
            limit.low if server.knee else None,
            limit.high,
        )
        points = server.curve.with_columns(load=server.curve["load"] * rate)
        hours = found.hours.with_columns(
            mean=found.hours["mean"] * rate, highest=found.hours["highest"] * rate
        )
        return [
            Part(
                "Latency by load",
                by_position(
                    Column("load", "Load", unit=self.unit),
                    Column("windows", "Windows", unit=""),
                    Column("p10", "10 %", unit="times"),
                    Column("median", "Median", unit="times"),
                    Column("p90", "90 %", unit="times"),
                    Column("fitted", "Fitted", unit="times"),
                ),
                points.rows(),
                "curve",
                charts.curve(points, marks, KNEE_FACTOR),
                about=(
                    f"Time of requests relative to that without load, by load ({self.method}): "
                    "median and 10 to 90 % of the windows."
                ),
                exports_url=self._exports_url("curve"),
            ),
            Part(
                "Load over time",
                by_position(
                    Column("start", "Hour"),
                    Column("mean", "Mean", unit=self.unit),
                    Column("highest", "Highest window", unit=self.unit),
                ),
                hours.rows(),
                "load",
                charts.load(hours, window.axis, marks),
                about="In requests of the usual mix, by hour.",
                exports_url=self._exports_url("load"),
            ),
        ]

    def _exports_url(self, chart: str) -> str:
        query = self._query.copy()
        query.pop("format", None)
        address = reverse("server_capacity_chart", args=[self.server.name, chart])
        return f"{address}?{query.urlencode()}"

    def export(self, name: str) -> tuple[Sequence[str], Any]:
        """Return header and rows of a chart's export; without a capacity, the reason.

        Raises:
            Http404: the name is unknown.
        """
        if name not in CHARTS:
            raise Http404("There is no such chart.")
        if self.refusal:
            return ("reason",), [(self.refusal,)]
        return next(chart.export for chart in self.charts if chart.name == name)

    @property
    def about(self) -> dict[str, object]:
        """The members of JSON exports next to their rows."""
        about: dict[str, object] = {
            "server": self.server.name,
            "simulated": self.server.filesystem.simulated,
            "method": self.method,
            "unit": self.unit,
            "verdict": self.verdict or self.refusal,
            "capacity_in_rules_per_s": self.server.capacity_per_s or DEFAULT_PER_S,
            "capacity_in_rules_is_registered": bool(self.server.capacity_per_s),
        }
        server, found = self.capacity, self.found
        if server is None or found is None:
            return about
        rate = 1 / server.cost_s
        safe = server.safe
        return about | {
            "start": found.start,
            "end": found.end,
            "reached": server.knee is not None,
            **_members("knee", server.knee.scaled(rate) if server.knee else None),
            "unconfirmed_knee": server.unconfirmed_knee and server.unconfirmed_knee * rate,
            "windows_above_knee": len(server.slow.load),
            "days_above_knee": server.slow.days,
            "highest_safe_load": safe and safe.load * rate,
            "safe_windows": safe and safe.windows,
            "safe_days": safe and safe.days,
            "highest_load": safe and safe.highest_seen * rate,
            "median_load": server.usual_load * rate,
            "busy_load": server.busy_load * rate,
            **_members("headroom", server.headroom.scaled(rate) if server.headroom else None),
            "cost_us": server.cost_s * 1e6,
            "windows": server.windows,
            "days": server.days,
            "excluded": server.excluded,
            "resampled": server.resampled,
            "limits": list(self.limits),
        }

    @property
    def export_rows(self) -> Iterator[tuple[str, str]]:
        """Yield label and value of each figure; without a capacity, the reason."""
        if self.refusal:
            yield ("Capacity", f"unknown: {self.refusal}")
        yield from self.figures


def _members(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    return {
        name: estimate.value if estimate else None,
        f"{name}_low": estimate.low if estimate else None,
        f"{name}_high": estimate.high if estimate else None,
    }


def _windows(windows: int, days: int) -> str:
    """Return a number of windows and their days in words."""
    return f"{counted(windows, 'window')} on {counted(days, 'day')}"


def _rate(value: float) -> str:
    """Return a rate with three digits."""
    return significant(float(f"{value:.{_DIGITS}g}"))


def _interval(estimate: Estimate) -> str:
    if estimate.high is None:
        return f"at least {_rate(estimate.low)}, no upper bound"
    return f"95 % interval {_rate(estimate.low)} to {_rate(estimate.high)}"
