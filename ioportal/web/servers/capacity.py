"""The capacity page of a server: how much load it carries, and how many more jobs of a kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from django.http import Http404
from django.urls import reverse

from ioportal.core.formatting import counted, significant
from ioportal.core.time_ranges import TimeRange
from ioportal.load import capacity, job_loads
from ioportal.load.analysis.capacity import (
    CURVE,
    KNEE_FACTOR,
    RESTART_PAUSE,
    STEADY_RATIO,
    Capacity,
    MoreJobs,
    Refusal,
    Resampled,
    more_jobs,
)
from ioportal.load.analysis.safe_load import MAX_GAP_RATIO, MIN_UNIT_WINDOWS, MIN_UNITS, End
from ioportal.load.capacity import Method
from ioportal.load.charts import capacity as charts
from ioportal.rules.capacity import DEFAULT_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    import polars as pl
    from django.http import QueryDict

    from ioportal.core.charts.time_axis import Figure
    from ioportal.load.analysis.capacity import Estimate
    from ioportal.load.analysis.load_ramp import Interval
    from ioportal.load.analysis.safe_load import SafeLoad
    from ioportal.load.capacity import ServerCapacity
    from ioportal.site.models import Server

_HEADERS = {"curve": tuple(CURVE), "load": ("start", "mean", "highest")}  # of exports
_PRESERVED = ("start", "end", "last", "method")
_DIGITS = 3  # of rates in sentences
_ROWS_SHOWN = 100  # in the table of a page; exports have all
_UNITS = {Method.TRACES: "RPCs/s", Method.STATISTICS: "requests/s"}


@dataclass(frozen=True)
class CapacityChart:
    """A chart with its table and export."""

    name: str
    title: str
    about: str
    labels: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    figure: Figure
    exports_url: str

    is_empty = False

    @property
    def script_id(self) -> str:
        """The id of the element with the figure."""
        return f"figure-{self.name}"

    @property
    def table(self) -> list[tuple[Any, list[float | None]]]:
        """The first rows for the page: first value, other values."""
        return [(first, others) for first, *others in self.rows[:_ROWS_SHOWN]]

    @property
    def more_rows(self) -> int:
        """The number of rows that only the exports have."""
        return max(0, len(self.rows) - _ROWS_SHOWN)


class CapacityPage:
    """The capacity of a metadata server in a range."""

    def __init__(self, server: Server, query: QueryDict, user: str, application: str) -> None:
        """`user` and `application` select the kind of jobs; "": none, any."""
        self.server = server
        self.user = user
        self.application = application
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

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """Parameters that the form of the kind of jobs preserves."""
        return [(name, value) for name in _PRESERVED if (value := self._query.get(name))]

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
    def _requests(self) -> str:
        return "RPCs" if self.method is Method.TRACES else "requests"

    def _per_second(self, estimate: Estimate) -> Estimate:
        return estimate.scaled(1 / self.capacity.cost_s) if self.capacity else estimate

    @property
    def verdict(self) -> str:
        """The answer in two sentences."""
        server = self.capacity
        if server is None:
            return ""
        if server.knee:
            limit = self._per_second(server.knee)
            answer = (
                f"{self.server.name} carries {_rate(limit.value)} {self.unit} "
                f"({_interval(limit)}) before {self._at_knee} as without load."
            )
        else:
            answer = (
                f"Highest steady load seen with normal latency: {self._shown(server.limit.value)}. "
                f"{self._highest_seen(server)}The capacity itself is unknown."
            )
        return f"{answer} {self._busy(server)}"

    def _highest_seen(self, server: Capacity) -> str:
        """Return the sentence about a higher load than the one with normal latency."""
        safe = server.safe
        if safe is None or safe.highest_seen <= MAX_GAP_RATIO * safe.load:
            return ""
        return f"Steady loads up to {self._shown(safe.highest_seen)} were seen. "

    @property
    def _hours(self) -> str:
        """The hours with data on which the load of busy hours rests."""
        hours = self.found.hours.height if self.found else 0
        return f"{counted(hours, 'hour')} with data"

    def _busy(self, server: Capacity) -> str:
        rest = f"95 % of {self._hours} have less"
        busy = f"The load of busy hours is {self._shown(server.busy_load)} ({rest})"
        if not server.is_busy_load_seen:
            return f"{busy}, for which the latency is not known."
        left = server.limit.value - server.busy_load
        if server.knee is None:
            return f"{busy}."
        if left <= 0:
            return f"{busy}, so nothing is left."
        return f"{busy}, so {self._shown(left)} are left."

    @property
    def evidence(self) -> str:
        """The windows behind the answer, and higher loads, in sentences."""
        server = self.capacity
        if server is None:
            return ""
        return " ".join([*self._below(server), *self._above(server)])

    def _below(self, server: Capacity) -> Iterator[str]:
        """Yield the sentences about the highest load with normal latency."""
        safe = server.safe
        if safe is None:
            yield f"At no load is it certain that latency is below {KNEE_FACTOR:g} times."
            return
        windows = _windows(safe.windows, safe.days)
        loads = f"from {self._shown(safe.lowest)} to {self._shown(safe.load)}"
        yield f"{windows} cover the loads {loads} without gaps."
        yield f"Latency at the highest of these loads is {_times(safe.latency)} that without load."

    def _above(self, server: Capacity) -> Iterator[str]:
        """Yield the sentences about higher loads."""
        above = f"{_windows(len(server.slow.load), server.slow.days)} have higher loads"
        if server.knee:
            few = ": too few for an upper bound" if server.knee.high is None else ""
            yield f"{above} than the knee{few}."
        elif server.unconfirmed_knee:
            yield (
                f"Latency reached {KNEE_FACTOR:g} times at about "
                f"{self._shown(server.unconfirmed_knee)}, but only {above}: too few to state the "
                "capacity."
            )
        elif server.safe:
            yield "No knee was found."
            yield from self._beyond(server.safe)

    def _beyond(self, safe: SafeLoad) -> Iterator[str]:
        """Yield the sentences about loads that are not shown to be safe."""
        highest = self._shown(safe.highest_seen)
        beyond = safe.beyond
        if safe.end is End.GAP and safe.next_load:
            yield (
                f"Steady loads from {self._shown(safe.next_load)} to {highest} were also seen. "
                "Those in between are rare or missing, so higher ones are not advised."
            )
        elif safe.end is End.SLOW:
            yield f"At higher loads, latency may reach {KNEE_FACTOR:g} times."
        elif safe.end is End.FEW and len(beyond.load) < MIN_UNITS * MIN_UNIT_WINDOWS:
            yield f"Single windows up to {highest} were also seen, too few to advise on."
        elif safe.end is End.FEW:
            yield (
                f"{_windows(len(beyond.load), beyond.days)} with loads up to {highest} were also "
                "seen, too few at similar loads to advise on."
            )
        if slow := safe.slow_beyond:
            where = "1 window" if slow == 1 else f"{slow:,} windows"
            yield f"Latency reached {KNEE_FACTOR:g} times in {where} at higher loads."

    def _shown(self, load: float) -> str:
        """Return a load of the capacity with its unit."""
        cost_s = self.capacity.cost_s if self.capacity else 1.0
        return f"{_rate(load / cost_s)} {self.unit}"

    @property
    def _at_knee(self) -> str:
        if self.found and not self.found.has_handling:
            return "requests wait twice as long for a thread"
        return f"its {self._requests} take twice as long"

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Labels and values of the capacity."""
        server = self.capacity
        if server is None:
            return []
        return [
            *self._knee_figures(server),
            *self._safe_figures(server),
            ("Median load", self._shown(server.usual_load)),
            ("Busy hours", f"{self._shown(server.busy_load)}, from {self._hours}"),
            ("Headroom in busy hours", self._headroom(server)),
            ("Capacity in rules", self.capacity_in_rules),
            ("Cost of a request", f"{significant(server.cost_s * 1e6)} µs"),
        ]

    @property
    def capacity_in_rules(self) -> str:
        """The capacity with which rules compare loads, and where it is from."""
        registered = self.server.capacity_per_s
        origin = "registered" if registered else "assumed; register capacity_per_s"
        return f"{registered or DEFAULT_PER_S:,} requests/s ({origin})"

    def _knee_figures(self, server: Capacity) -> Iterator[tuple[str, str]]:
        slow = _windows(len(server.slow.load), server.slow.days)
        if server.knee:
            knee = self._per_second(server.knee)
            yield "Knee", f"{_rate(knee.value)} {self.unit}"
            yield "95 % interval", _interval(knee).removeprefix("95 % interval ")
            yield "Above the knee", slow
        elif server.unconfirmed_knee:
            yield "Knee", f"unconfirmed, about {self._shown(server.unconfirmed_knee)}"
            yield "Above the knee", slow
        else:
            yield "Knee", "not found"

    def _safe_figures(self, server: Capacity) -> Iterator[tuple[str, str]]:
        safe = server.safe
        if safe is None:
            yield "Highest steady load with normal latency", "unknown"
            return
        yield "Highest steady load with normal latency", self._shown(safe.load)
        yield "Latency at this load", _times(safe.latency)
        yield "Loads covered", f"{_rate(safe.lowest / server.cost_s)} to {self._shown(safe.load)}"
        yield "Coverage", _windows(safe.windows, safe.days)
        yield "Highest steady load", self._shown(safe.highest_seen)

    def _headroom(self, server: Capacity) -> str:
        if server.headroom is None:
            return "unknown"
        at_least = "at least " if server.knee is None else ""
        return f"{at_least}{self._shown(server.headroom.value)}"

    @property
    def assumptions(self) -> list[str]:
        """Sources and assumptions in sentences."""
        found, server = self.found, self.capacity
        if found is None or server is None:
            return []
        excluded = ", ".join(f"{count:,} ({name})" for name, count in server.excluded.items())
        sentences = [
            (
                f"Loads are in {self._requests} of the usual mix. A costlier mix reaches the knee "
                "at a lower rate."
            ),
            f"{server.windows:,} windows with a steady load are used. Excluded: {excluded}.",
            f"A load is steady within {STEADY_RATIO:g} times the loads before and after.",
            f"The {RESTART_PAUSE.seconds // 60} minutes after a restart are excluded.",
            (
                "Time blocked on locks is not load. Loads that last shorter than three windows are "
                "not seen."
            ),
            (
                "A load is safe if the 95 % interval of its latency is below "
                f"{KNEE_FACTOR:g} times that without load. Latency does not fall with the load."
            ),
            (
                f"Safe loads need {MIN_UNIT_WINDOWS} windows at similar loads in each of "
                f"{MIN_UNITS} {server.resampled}. A gap between loads "
                f"ends them if the next load is more than {MAX_GAP_RATIO:g} times the last."
            ),
            (
                f"Intervals are from {server.units} resampled {server.resampled}. They cover the "
                "data, not changes of hardware, clients or mix."
            ),
            "Busy: 95 % of the hours have a lower load.",
        ]
        if server.resampled is Resampled.HOURS:
            days = "one day" if server.days == 1 else f"{server.days} days"
            sentences.append(f"All windows are of {days}. Other days may differ.")
        if found.upgrade:
            sentences.append(f"Only data since the upgrade to {found.upgrade} is used.")
        if not found.has_handling:
            sentences.append(
                "This server version does not count handling times (Lustre before 2.14). Latency "
                "is the wait in the queue: the knee is the load at which requests wait for a "
                "thread. Their service may slow down at lower loads. All requests count the same."
            )
        return sentences

    @cached_property
    def more(self) -> MoreJobs | Refusal | None:
        """How many more jobs of the kind fit; None: no kind is selected, or no capacity known."""
        if not self.user or self.found is None or self.capacity is None:
            return None
        if self._loads is None:
            return Refusal("No metadata operations were counted on its MDTs (job_stats).")
        loads, days = (self._loads[name].to_numpy() for name in ("load", "day"))
        return more_jobs(self.capacity, loads, days)

    @cached_property
    def _loads(self) -> pl.DataFrame | None:
        if self.found is None:
            return None
        return job_loads.of_kind(self.server, self.found, self.user, self.application)

    @property
    def kind(self) -> str:
        """The kind of jobs in words."""
        return f"{self.application} of {self.user}" if self.application else f"jobs of {self.user}"

    @property
    def more_verdict(self) -> str:
        """The answer about the kind of jobs."""
        more = self.more
        if more is None or self.capacity is None:
            return ""
        if isinstance(more, Refusal):
            return f"Number of further jobs unknown. {more.reason}"
        most = max(int(more.more.value), 0)
        what = f"of the kind “{self.kind}”"
        if self.capacity.knee is None:
            return (
                f"The load of {most:,} more jobs {what} is within the highest steady load "
                "seen with normal latency. Whether the server carries more is unknown."
            )
        low = max(int(more.more.low), 0)
        interval = (
            f"at least {low:,}"
            if more.more.high is None
            else f"95 % interval {low:,} to {max(int(more.more.high), 0):,}"
        )
        return f"In busy hours the server carries {most:,} more jobs {what} ({interval})."

    @property
    def job_figures(self) -> list[tuple[str, float, float]]:
        """Load of a past job of the kind: name, per job and per node, in requests/s."""
        more, loads, server = self.more, self._loads if self.user else None, self.capacity
        if not isinstance(more, MoreJobs) or loads is None or server is None:
            return []
        per_job = loads["load"].to_numpy() / server.cost_s
        per_node = per_job / loads["nodes"].to_numpy()
        return [
            (name, float(reduce(per_job)), float(reduce(per_node)))
            for name, reduce in (
                ("Mean", np.mean),
                ("Median", np.median),
                ("90 %", lambda values: np.quantile(values, 0.9)),
            )
        ]

    @property
    def job_assumptions(self) -> list[str]:
        """Assumptions about the jobs."""
        if not isinstance(self.more, MoreJobs):
            return []
        source = (
            "The load of a past job is the usual time of its RPCs on this server per traced second."
            if self.method is Method.TRACES
            else "The load of a past job is its metadata operations per second, at the mean cost "
            "of an operation on this server. All of its operations are taken to be on this server."
        )
        return [
            (
                f"Further jobs are like the latest {self.more.jobs:,} past ones, and add up to a "
                "multiple of their mean load."
            ),
            source,
            "They start at different times: a common start would add their start-up loads.",
            "All other load is as in busy hours.",
        ]

    @cached_property
    def charts(self) -> list[CapacityChart]:
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
            CapacityChart(
                "curve",
                "Latency by load",
                f"Time of {self._requests} relative to that without load, by bin of loads: median "
                f"and 10 to 90 % of the windows ({self.method}).",
                (f"Load ({self.unit})", "Windows", "10 %", "Median", "90 %", "Fitted"),
                points.rows(),
                charts.curve(points, marks, KNEE_FACTOR),
                self._exports_url("curve"),
            ),
            CapacityChart(
                "load",
                "Load over time",
                f"In {self._requests} of the usual mix: mean and highest window of each hour.",
                ("Hour", f"Mean ({self.unit})", f"Highest window ({self.unit})"),
                hours.rows(),
                charts.load(hours, window.axis, marks),
                self._exports_url("load"),
            ),
        ]

    def _exports_url(self, chart: str) -> str:
        query = self._query.copy()
        query.pop("format", None)
        address = reverse("server_capacity_chart", args=[self.server.name, chart])
        return f"{address}?{query.urlencode()}"

    def export(self, name: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return header and rows of a chart's export; without a capacity, the reason.

        Raises:
            Http404: the name is unknown.
        """
        if name not in _HEADERS:
            raise Http404("There is no such chart.")
        if self.refusal:
            return ("reason",), [(self.refusal,)]
        rows = {chart.name: chart.rows for chart in self.charts}
        return _HEADERS[name], rows[name]

    @property
    def about(self) -> dict[str, object]:
        """The members of JSON exports next to their rows."""
        about: dict[str, object] = {
            "server": self.server.name,
            "simulated": self.server.filesystem.simulated,
            "method": self.method,
            "unit": self.unit,
            "verdict": self.verdict or self.refusal,
            "evidence": self.evidence,
            "capacity_in_rules_per_s": self.server.capacity_per_s or DEFAULT_PER_S,
            "capacity_in_rules_is_registered": bool(self.server.capacity_per_s),
        }
        server, found = self.capacity, self.found
        if server is None or found is None:
            return about
        rate = 1 / server.cost_s
        safe = server.safe
        about |= {
            "start": found.start,
            "end": found.end,
            "reached": server.knee is not None,
            **_members("knee", server.knee.scaled(rate) if server.knee else None),
            "unconfirmed_knee": server.unconfirmed_knee and server.unconfirmed_knee * rate,
            "windows_above_knee": len(server.slow.load),
            "days_above_knee": server.slow.days,
            "highest_safe_load": safe and safe.load * rate,
            "lowest_safe_load": safe and safe.lowest * rate,
            "safe_windows": safe and safe.windows,
            "safe_days": safe and safe.days,
            **_members("safe_latency", safe.latency if safe else None),
            "safe_end": safe and safe.end,
            "highest_load": safe and safe.highest_seen * rate,
            "median_load": server.usual_load * rate,
            "busy_load": server.busy_load * rate,
            **_members("headroom", server.headroom.scaled(rate) if server.headroom else None),
            "cost_us": server.cost_s * 1e6,
            "windows": server.windows,
            "days": server.days,
            "excluded": server.excluded,
            "resampled": server.resampled,
            "assumptions": self.assumptions,
        }
        if isinstance(self.more, MoreJobs):
            about["jobs"] = {
                "user": self.user,
                "application": self.application,
                "past_jobs": self.more.jobs,
                "mean_load": self.more.mean_load * rate,
                "median_load": self.more.median_load * rate,
                "p90_load": self.more.p90_load * rate,
                **_members("more", self.more.more),
                "assumptions": self.job_assumptions,
            }
        return about

    @property
    def export_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield label and value of each figure; without a capacity, the reason."""
        if self.refusal:
            yield ("Capacity", f"unknown: {self.refusal}")
        yield from self.figures
        if self.more_verdict:
            yield ("More jobs", self.more_verdict)


def _members(name: str, estimate: Estimate | Interval | None) -> dict[str, float | None]:
    return {
        name: estimate.value if estimate else None,
        f"{name}_low": estimate.low if estimate else None,
        f"{name}_high": estimate.high if estimate else None,
    }


def _windows(windows: int, days: int) -> str:
    """Return a number of windows and their days in words."""
    of_days = "1 day" if days == 1 else f"{days:,} days"
    return f"{'1 window' if windows == 1 else f'{windows:,} windows'} on {of_days}"


def _times(latency: Interval) -> str:
    """Return a relative latency with its interval."""
    return (
        f"{significant(latency.value)} times (95 % interval {significant(latency.low)} to "
        f"{significant(latency.high)})"
    )


def _rate(value: float) -> str:
    """Return a rate with three digits."""
    return significant(float(f"{value:.{_DIGITS}g}"))


def _interval(estimate: Estimate) -> str:
    if estimate.high is None:
        return f"at least {_rate(estimate.low)}, no upper bound"
    return f"95 % interval {_rate(estimate.low)} to {_rate(estimate.high)}"
