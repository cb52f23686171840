"""Load and times of a metadata server between reads of its service statistics (mds_stats)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from django.conf import settings

from collectors.lustre.service_stats import WAIT
from ioportal.load.analysis.capacity import WINDOWS
from ioportal.load.analysis.waiting import US_PER_S
from ioportal.site.models import Counter, Service
from ioportal.telemetry import services
from ioportal.telemetry.models import ServiceSnapshot

if TYPE_CHECKING:
    from datetime import datetime

_MAX_READS = 10_000  # longer ranges have longer windows
_SERVICES = "mdt"  # prefix of the services that handle metadata operations
_LOCKS = "ldlm_"  # prefix of the kinds of requests that wait for locks
_TIMED_SHARE = 0.5  # of the requests; below, handling times are unknown


def read(server_id: int, start: datetime, end: datetime) -> tuple[pl.DataFrame, bool]:
    """Return the windows between reads, and whether handling times are known.

    They have the columns of `WINDOWS` without the day.

    Usual times are the medians of intervals with at most the median rate of requests, by kind.
    Where handling times are unknown, all requests cost the same.
    """
    microseconds = ServiceSnapshot.Unit.MICROSECONDS
    kinds = _kinds(services.differences(server_id, start, end, _MAX_READS, microseconds))
    key = ("start", "end", "service_id")
    waits = kinds.filter(name=WAIT).select(
        *key, requests="samples", wait_us="sum", rate=pl.col("samples") / pl.col("seconds")
    )
    calm = waits.filter(pl.col("rate") <= pl.col("rate").median().over("service_id"))
    usual_wait = calm.group_by("service_id").agg(
        usual_wait_us=(pl.col("wait_us") / pl.col("requests")).median()
    )
    handled = kinds.filter(pl.col("name") != WAIT).join(waits, on=key)
    timed = int(handled["samples"].sum())
    has_handling = timed > 0 and timed >= _TIMED_SHARE * int(waits["requests"].sum())
    usual = (
        handled.join(calm.select(key), on=key)
        .group_by("service_id", "name")
        .agg(usual_us=(pl.col("sum") / pl.col("samples")).median())
    )
    is_free = ~pl.col("name").str.starts_with(_LOCKS)
    times = (
        handled.join(usual, on=["service_id", "name"])
        .with_columns(usual_us=pl.col("samples") * pl.col("usual_us"))
        .group_by(key)
        .agg(
            timed=pl.sum("samples"),
            handled_us=pl.sum("sum"),
            usual_handled_us=pl.sum("usual_us"),
            free=pl.col("samples").filter(is_free).sum(),
            free_handled_us=pl.col("sum").filter(is_free).sum(),
            free_usual_us=pl.col("usual_us").filter(is_free).sum(),
        )
    )
    requests, free = pl.col("requests"), pl.col("free")
    if not has_handling:
        windows = waits.join(usual_wait, on="service_id").with_columns(
            work_us=requests,
            took_us=pl.col("wait_us"),
            usual_us=requests * pl.col("usual_wait_us"),
            free_took_us=0.0,
            free_usual_us=0.0,
        )
    else:
        share = requests / pl.col("timed")  # kinds without times count as the others
        windows = (
            waits.join(usual_wait, on="service_id")
            .join(times, on=key)
            .with_columns(
                work_us=pl.col("usual_handled_us") * share,
                took_us=pl.col("wait_us") + pl.col("handled_us") * share,
                usual_us=requests * pl.col("usual_wait_us") + pl.col("usual_handled_us") * share,
                free_took_us=pl.col("wait_us") * free / requests + pl.col("free_handled_us"),
                free_usual_us=free * pl.col("usual_wait_us") + pl.col("free_usual_us"),
            )
        )
    names = list(WINDOWS)[3:]
    windows = windows.group_by("start", "end").agg(pl.col(names).sum().cast(pl.Float64))
    return windows.sort("start"), has_handling


def _kinds(differences: pl.DataFrame) -> pl.DataFrame:
    """Return requests and times of the metadata services by kind and interval between reads."""
    names = dict(Counter.objects.values_list("pk", "name"))
    of_metadata = Service.objects.filter(name__startswith=_SERVICES).values_list("pk", flat=True)
    length = pl.col("end") - pl.col("start")
    return (
        differences.filter(
            ~pl.col("is_reset"),
            pl.col("samples") > 0,
            pl.col("sum") >= 0,
            length <= settings.POLL_GAP,
            pl.col("service_id").is_in(list(of_metadata)),
        )
        .with_columns(
            # Key 0 keeps the mapping from being empty, which polars does not take as strings.
            name=pl.col("counter_id").replace_strict({0: ""} | names, return_dtype=pl.String),
            seconds=length.dt.total_microseconds() / US_PER_S,
        )
        .filter((pl.col("name") == WAIT) | ~pl.col("name").str.starts_with("req"))
    )
