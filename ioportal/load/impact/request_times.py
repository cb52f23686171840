"""Times of a server's requests against usual, divided by who caused them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import polars as pl
from django.db.models import F
from django.db.models.functions import Coalesce
from django.urls import reverse

from ioportal.core.charts.axes import kind_of
from ioportal.core.charts.palette import REST, principals
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.formatting import step_of
from ioportal.core.timelines import Steps
from ioportal.load import baselines
from ioportal.load.analysis.slowness import TIMES
from ioportal.load.analysis.waiting import WINDOW
from ioportal.load.impact.impact_totals import OUTERMOST, names_of
from ioportal.load.series import bin_width
from ioportal.load.step_charts import StepsChart
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage, ImpactWindow, ceil_to_window

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from ioportal.core.time_ranges import TimeRange
    from ioportal.site.models import Server

USUAL, UNASSIGNED = "usual", "no single cause"
_STEPS = 360  # at most: minutes of six hours
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CAUSES = 5  # the largest; the rest has no single cause
_IMPACTS = {
    "start": TIMES["start"],
    "kind": pl.Int16(),
    "key": pl.Int64(),
    "impact_us": pl.Float64(),
    "others_us": pl.Float64(),
    "others_usual_us": pl.Float64(),
}


def chart(server: Server, window: TimeRange, user: User) -> StepsChart:
    """Return the chart of a server's request times in a range; for staff."""
    width = bin_width((window.end - window.start) / _STEPS, WINDOW)
    start = window.start - (window.start - _EPOCH) % width  # bins are on the clock
    end = ceil_to_window(window.end)
    impacts = _impacts(server, start, end, user)
    sums = (
        _times(server, start, end, impacts)
        .group_by(_bin(start, width))
        .agg(pl.sum("took_us", "usual_us"))
    )
    by_cause = impacts.group_by(_bin(start, width), "cause").agg(pl.sum("impact_us"))
    ranked = by_cause.group_by("cause").agg(pl.sum("impact_us")).sort("impact_us", "cause")
    causes = ranked["cause"].to_list()[: -_CAUSES - 1 : -1]
    kinds = (USUAL, *causes, UNASSIGNED)
    ratios = _divided(sums, by_cause, causes)
    observed = _observed(server, start, end, width)
    if ratios.is_empty():
        observed = observed.clear()  # no baseline, or no requests
    frame = (
        observed.join(ratios, on="bin", how="full", coalesce=True)
        .sort("bin")
        .select(
            *kinds,
            start=start + pl.col("bin") * width,
            end=pl.min_horizontal(start + (pl.col("bin") + 1) * width, end),
            observed=pl.lit(1, pl.Int64),
        )
    )
    return StepsChart(_chart(server, causes, width), Steps(frame, kinds, 1), tuple, window)


def export_url(server: Server, window: TimeRange) -> str:
    """Return the URL of the export of `chart`; the server with its filesystem."""
    query = {
        "filesystem": server.filesystem.name,
        "start": window.start.isoformat(),
        "end": window.end.isoformat(),
    }
    return f"{reverse('request_times', args=[server.name])}?{urlencode(query)}"


def _chart(server: Server, causes: list[str], width: timedelta) -> Chart:
    tokens = {**principals(causes), USUAL: "--line-strong", UNASSIGNED: REST}
    return Chart(
        f"request-times-{server.pk}",
        f"Request times of {server.name}, by cause",
        "\N{MULTIPLICATION SIGN} usual",
        f"{step_of(width)} means from arrival to end, relative to usual, without the requests of "
        "the largest cause, and with pings. Extra time is divided by who caused it. Where the "
        "server was not traced, only estimated slow intervals are drawn (rpctrace, mds_stats).",
        Style.PARTS,
        {},
        lambda kinds: {kind: tokens[kind] for kind in kinds},
    )


def _impacts(server: Server, start: datetime, end: datetime, user: User) -> pl.DataFrame:
    """Return the stored impact by window and cause: columns of `_IMPACTS`, and cause.

    It includes the waiting of pings and daemons, as the times of others' requests do.
    """
    stored = ImpactWindow.objects.between(start, end).filter(
        server_id=server.pk, kind__in=OUTERMOST
    )
    whole_us = F("impact_us") + Coalesce("outside_us", 0)
    columns = ("start", "kind", "principal_id", whole_us, "others_us", "others_usual_us")
    rows = pl.DataFrame(list(stored.values_list(*columns)), schema=_IMPACTS, orient="row")
    keys = rows.select("kind", "key").unique()
    named = names_of(keys.rows(), user)
    causes = [kind_of(named[key].text) if key in named else UNASSIGNED for key in keys.rows()]
    return rows.join(
        keys.with_columns(cause=pl.Series(causes, dtype=pl.String)), on=["kind", "key"]
    )


def _times(server: Server, start: datetime, end: datetime, impacts: pl.DataFrame) -> pl.DataFrame:
    """Return request times by window, without the largest cause: its requests wait, too."""
    usual = baselines.at_time([server.pk], start)
    of_others = (
        impacts.filter(pl.col("others_usual_us") > 0)
        .sort("impact_us")
        .group_by("start")
        .agg(took_us=pl.last("others_us"), usual_us=pl.last("others_usual_us"))
    )
    of_all = baselines.times([server.pk], start, end, usual).drop("server")
    both = pl.concat([of_others, of_all.join(of_others, on="start", how="anti")], how="diagonal")
    return both.filter(pl.col("start").is_between(start, end, closed="left"))


def _divided(sums: pl.DataFrame, by_cause: pl.DataFrame, causes: list[str]) -> pl.DataFrame:
    """Divide the times of each bin, relative to usual, by cause."""
    parts = (
        by_cause.filter(pl.col("cause").is_in(causes))
        .pivot("cause", on_columns=causes, index="bin", values="impact_us")
        .join(sums, on="bin", how="right")
        .filter(pl.col("usual_us") > 0)
    )
    total = pl.col("took_us") / pl.col("usual_us")
    extra = (total - 1).clip(lower_bound=0)
    caused = {cause: pl.col(cause).fill_null(0) / pl.col("usual_us") for cause in causes}
    whole = pl.sum_horizontal(pl.lit(0.0), *caused.values())
    # Several causes may be accountable for the same time.
    scale = pl.when(whole > extra).then(extra / whole).otherwise(1)
    return parts.select(
        "bin",
        pl.min_horizontal(total, 1).alias(USUAL),
        *((share * scale).alias(cause) for cause, share in caused.items()),
        (extra - whole * scale).alias(UNASSIGNED),
    )


def _observed(server: Server, start: datetime, end: datetime, width: timedelta) -> pl.DataFrame:
    """Return the bins with a part of a trace or of statistics."""
    polled = coverage.by_source(Coverage.Source.MDS_STATS, coverage.polled([server.pk]), start, end)
    intervals = [*coverage.traced([server.pk], start, end), *(span for _, span in polled)]
    bins = {
        number
        for since, until in intervals
        for number in range(max(0, (since - start) // width), -((start - min(until, end)) // width))
    }
    return pl.DataFrame({"bin": sorted(bins)}, schema={"bin": pl.Int64})


def _bin(start: datetime, width: timedelta) -> pl.Expr:
    since_us = (pl.col("start") - start).dt.total_microseconds()
    return (since_us // (width // _MICROSECOND)).alias("bin")
