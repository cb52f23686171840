"""``GET /api/v1/metrics``: health of the site and requests of the web processes, for Prometheus."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from ioportal.api.authentication import ScopedToken
from ioportal.api.models import Token
from ioportal.api.problems import problems
from ioportal.api.responses import answer
from ioportal.ingest import health
from ioportal.telemetry import retention, storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from prometheus_client.metrics_core import Metric

    from ioportal.ingest.health import Backlog, SourceHealth

router = Router(tags=["Metrics"])

_SOURCE_METRICS: tuple[tuple[str, str, Callable[[SourceHealth], float | None]], ...] = (
    (
        "last_batch_timestamp_seconds",
        "Arrival of the latest batch",
        lambda health: _epoch_s(health.source.last_batch_at),
    ),
    (
        "newest_record_timestamp_seconds",
        "Last record of the latest batch",
        lambda health: _epoch_s(health.latest_record_at),
    ),
    ("lag_seconds", "Age of that record when it was stored", lambda health: health.lag_s),
    ("gap_seconds", "Total gaps within a day", lambda health: health.gap_s),
    ("rejected_lines", "Rejected lines of a day", lambda health: health.rejected),
    ("refusals", "Refused deliveries, of all agents", lambda health: health.refusals),
    ("spool_batches", "Batches in the spool", lambda health: health.source.spool_batches),
    ("spool_bytes", "Size of the spool", lambda health: health.source.spool_bytes),
    (
        "clock_offset_seconds",
        "Clock of the agent minus clock of the portal",
        lambda health: health.source.clock_offset_s,
    ),
    ("problems", "Number of problems on the health page", lambda health: len(health.problems)),
)
_BACKLOG_METRICS: tuple[tuple[str, str, Callable[[Backlog], float]], ...] = (
    ("rows", "Pending work items", lambda backlog: backlog.rows),
    ("age_seconds", "Age of the oldest item", lambda backlog: backlog.age_s or 0),
)


@router.get(
    "",
    auth=ScopedToken(Token.Scope.METRICS),
    url_name="metrics",
    summary="Metrics of the portal",
    response=problems(),
    openapi_extra=answer(
        "All metrics (docs/api.md)",
        'ioportal_source_lag_seconds{source="mds1-trace",format="rpctrace"} 7.5\n',
        kind="text/plain",
        schema={"type": "string"},
    ),
)
def metrics(request: HttpRequest) -> HttpResponse:  # noqa: ARG001  (ninja's name)
    """Respond in the text format of Prometheus."""
    requests = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:  # over all web processes
        requests = CollectorRegistry()
        MultiProcessCollector(requests)  # type: ignore[no-untyped-call]
    site = CollectorRegistry()
    site.register(_Site())
    return HttpResponse(
        generate_latest(site) + generate_latest(requests), content_type=CONTENT_TYPE_LATEST
    )


class _Site:
    """Metrics read from the database at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        now = timezone.now()
        sources, backlogs = health.sources(now), health.backlogs(now)
        for name, description, source_value in _SOURCE_METRICS:
            family = GaugeMetricFamily(
                f"ioportal_source_{name}", description, labels=["source", "format"]
            )
            for state in sources:
                if (value := source_value(state)) is not None:
                    family.add_metric([state.source.name, state.source.format], value)
            yield family
        for name, description, backlog_value in _BACKLOG_METRICS:
            family = GaugeMetricFamily(
                f"ioportal_pending_{name}", description, labels=["stage", "kind"]
            )
            for backlog in backlogs:
                family.add_metric([backlog.stage, backlog.kind], backlog_value(backlog))
            yield family
        yield GaugeMetricFamily(
            "ioportal_database_bytes", "Size of the database", storage.database_bytes()
        )
        if (free := storage.free_bytes()) is not None:
            yield GaugeMetricFamily(
                "ioportal_database_free_bytes", "Free space on the database's disk", free
            )
        yield GaugeMetricFamily(
            "ioportal_owner_conflicts",
            "Records of another owner or source that contradict a stored job",
            health.owner_conflicts().count(),
        )
        failing = GaugeMetricFamily(
            "ioportal_stage_failures", "Consecutive failed runs of a stage", labels=["stage"]
        )
        for failure in health.failing_stages():
            failing.add_metric([failure.stage], failure.runs)
        yield failing
        licence = GaugeMetricFamily(
            "ioportal_timescaledb_info",
            "Version and licence of TimescaleDB",
            labels=["version", "licence"],
        )
        licence.add_metric([storage.version(), retention.licence()], 1)
        yield licence


def _epoch_s(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
