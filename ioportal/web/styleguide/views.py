"""The style guide: all components of pages on one page."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl
from django.conf import settings
from django.core.paginator import Paginator
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ioportal.core.charts.palette import SERIES
from ioportal.core.charts.time_axis import Mark, Meaning
from ioportal.core.timelines import Gap, Known
from ioportal.jobs.analysis import trends
from ioportal.jobs.analysis.trends import Step
from ioportal.jobs.charts import trends as charts
from ioportal.jobs.job_filters import JobFilter
from ioportal.jobs.models import Job, JobStatistics
from ioportal.jobs.populations.selections import BATCH_JOBS
from ioportal.metrics import BY_NAME
from ioportal.site.models import Cluster
from ioportal.web.common.staff_only import staff_only
from ioportal.web.common.tables import Table
from ioportal.web.jobs import columns
from ioportal.web.trends.charts import OFFERED, chart_of

if TYPE_CHECKING:
    from django.http import HttpResponse

    from ioportal.core.charts.time_axis import Figure
    from ioportal.core.charts.timelines import Chart
    from ioportal.web.common.requests import UserRequest

_TOKENS = re.compile(r"^  (--[\w-]+): (.+);$", re.MULTILINE)
_MONDAY = datetime(2017, 7, 3, tzinfo=UTC)
_DAYS = trends.buckets(_MONDAY, _MONDAY + timedelta(days=12), Step.DAY, UTC)
_UPGRADE = Mark(_MONDAY + timedelta(days=7), "lake: MDS 2.15.3", Meaning.BREAK)
_UNREAD = (
    Gap(_MONDAY + timedelta(days=3), _MONDAY + timedelta(days=5), Known.NOTHING),
    Gap(_MONDAY + timedelta(days=9), _MONDAY + timedelta(days=10), Known.PART),
)


def tokens() -> dict[str, str]:
    """Return names and values of all tokens of the stylesheet."""
    return dict(_TOKENS.findall((settings.BASE_DIR / "static/css/tokens.css").read_text()))


def jobs() -> list[Job]:
    """Return jobs that are not stored."""
    cluster = Cluster(name="titan")
    jobs = [
        Job(
            pk=number,
            batch_id=f"356712{number}",
            cluster=cluster,
            owner="alice",
            name="relax",
            state=Job.State.COMPLETED,
            quality=JobStatistics.Quality.GOOD,
            started_at=_MONDAY,
            node_count=1_200 // number,
        )
        for number in (1, 2, 3)
    ]
    for job in jobs:
        JobStatistics(job=job, duration_s=5_400, opens=120_000 // job.pk, read_bytes=10**9)
    return jobs


def figures() -> list[tuple[str, Chart, Figure]]:
    """Return stacked bars, and lines with a gap: element id, chart, figure."""
    ended = OFFERED[BATCH_JOBS.name].kinds_by_name["jobs-ended"].chart
    counts = pl.DataFrame(
        {
            "completed": [61, 70, 66, 81, 77, 12, 9, 64, 72, 69, 75, 80],
            "failed": [4, 2, 7, 9, 3, 0, 1, 5, 22, 18, 4, 2],
            "timeout": [2, 1, 3, 2, 2, 1, 0, 3, 5, 4, 1, 1],
            "cancelled": [1, 1, 0, 2, 1, 0, 0, 1, 2, 3, 0, 1],
            "other": [0] * 12,
        }
    )
    spread = chart_of(BY_NAME["metadata_operations"])
    quantiles = pl.DataFrame(
        {
            "n": [68, 74, 76, None, None, 13, 10, 73, 101, 94, 80, 84],
            "median": [9e4, 8e4, 9.5e4, None, None, 8e4, 7e4, 9e4, 2.1e5, 2e5, 9e4, 8.8e4],
            "p90": [2e5, 2.2e5, 2.1e5, None, None, 1.9e5, 1.7e5, 2e5, 7e5, 6.8e5, 2.2e5, 2e5],
        }
    )
    return [
        ("figure-bars", ended, charts.figure(ended, counts, _DAYS, [_UPGRADE])),
        ("figure-lines", spread, charts.figure(spread, quantiles, _DAYS, [_UPGRADE], _UNREAD)),
    ]


@require_safe
@staff_only
def styleguide(request: UserRequest) -> HttpResponse:
    """Tokens, type, controls, states, tables, charts and empty states."""
    values = tokens()
    return render(
        request,
        "styleguide/components.html",
        {
            "section": "styleguide",
            "colours": [name for name, value in values.items() if "light-dark(#" in value],
            "sizes": [name for name in values if name.startswith("--gap-")],
            "series": SERIES,
            "states": Job.State.choices,
            "qualities": JobStatistics.Quality.choices,
            "table": Table(
                "Sample of a wide table",
                columns.COLUMNS[:24],
                jobs(),
                sort="-node_count",
                address="#tables".format,
            ),
            "figures": figures(),
            "refused": JobFilter({"nodes_min": "many"}, queryset=Job.objects.none()).form,
            "now": timezone.now(),
            "pages": Paginator(range(500), 50).page(4),
        },
    )
