"""``GET /api/v1/metrics``: the site's health, and the web processes' requests, for Prometheus."""

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

from ioportal.api.models import Token
from ioportal.api.problems import ProblemResponse
from ioportal.api.tokens import ScopedToken
from ioportal.ingest import health
from ioportal.telemetry import retention, storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from prometheus_client.metrics_core import Metric

    from ioportal.ingest.health import Backlog, SourceHealth

router = Router()

_OF_SOURCES: tuple[tuple[str, str, Callable[[SourceHealth], float | None]], ...] = (
    (
        "last_batch_timestamp_seconds",
        "When its last batch came",
        lambda one: _epoch_s(one.source.last_batch_at),
    ),
    (
        "newest_record_timestamp_seconds",
        "The last record of its newest batch",
        lambda one: _epoch_s(one.latest_record_at),
    ),
    ("lag_seconds", "How old that record was when it was stored", lambda one: one.lag_s),
    ("gap_seconds", "How long it was not observed within a day", lambda one: one.gap_s),
    ("rejected_lines", "Lines of a day that were not readable", lambda one: one.rejected),
    ("spool_batches", "Batches on its disk", lambda one: one.source.spool_batches),
    ("spool_bytes", "What they take there", lambda one: one.source.spool_bytes),
    (
        "clock_offset_seconds",
        "Its clock less the portal's",
        lambda one: one.source.clock_offset_s,
    ),
    ("problems", "What is wrong with it", lambda one: len(one.problems)),
)
_OF_STAGES: tuple[tuple[str, str, Callable[[Backlog], float]], ...] = (
    ("rows", "Pieces of work that wait", lambda one: one.rows),
    ("age_seconds", "How long the oldest of them has waited", lambda one: one.age_s or 0),
)


@router.get(
    "",
    auth=ScopedToken(Token.Scope.METRICS),
    url_name="metrics",
    response=dict.fromkeys((401, 403, 429, 503), ProblemResponse),
)
def metrics(request: HttpRequest) -> HttpResponse:  # noqa: ARG001  (ninja's name)
    """Answer in Prometheus' text format."""
    requests = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:  # of all web processes together
        requests = CollectorRegistry()
        MultiProcessCollector(requests)  # type: ignore[no-untyped-call]
    site = CollectorRegistry()
    site.register(_Site())
    return HttpResponse(
        generate_latest(site) + generate_latest(requests), content_type=CONTENT_TYPE_LATEST
    )


class _Site:
    """What the database says, asked anew at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield the families of metrics."""
        now = timezone.now()
        sources, waiting = health.sources(now), health.backlogs(now)
        for name, about, value_of in _OF_SOURCES:
            family = GaugeMetricFamily(
                f"ioportal_source_{name}", about, labels=["source", "format"]
            )
            for one in sources:
                if (value := value_of(one)) is not None:
                    family.add_metric([one.source.name, one.source.format], value)
            yield family
        for name, about, value_of_stage in _OF_STAGES:
            family = GaugeMetricFamily(f"ioportal_pending_{name}", about, labels=["stage", "of"])
            for two in waiting:
                family.add_metric([two.stage, two.what], value_of_stage(two))
            yield family
        yield GaugeMetricFamily(
            "ioportal_database_bytes", "What the database takes", storage.database_bytes()
        )
        if (free := storage.free_bytes()) is not None:
            yield GaugeMetricFamily(
                "ioportal_database_free_bytes", "Free space on the database's disk", free
            )
        failing = GaugeMetricFamily(
            "ioportal_stage_failures", "Consecutive failed runs of a stage", labels=["stage"]
        )
        for failure in health.failing_stages():
            failing.add_metric([failure.stage], failure.runs)
        yield failing
        licence = GaugeMetricFamily(
            "ioportal_timescaledb_info", "What TimescaleDB it is", labels=["version", "licence"]
        )
        licence.add_metric([storage.version(), retention.licence()], 1)
        yield licence


def _epoch_s(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
