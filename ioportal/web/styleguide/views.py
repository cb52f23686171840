"""The style guide: all components of pages on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.paginator import Paginator
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ioportal.core.charts.palette import SERIES
from ioportal.jobs.job_filters import JobFilter
from ioportal.jobs.models import Job, JobStatistics
from ioportal.web.common.staff_only import staff_only
from ioportal.web.common.tables import Table
from ioportal.web.jobs import columns
from ioportal.web.styleguide import samples

if TYPE_CHECKING:
    from django.http import HttpResponse

    from ioportal.web.common.requests import UserRequest


@require_safe
@staff_only
def styleguide(request: UserRequest) -> HttpResponse:
    """Tokens, type, controls, states, tables, charts and empty states."""
    tokens = samples.tokens()
    return render(
        request,
        "styleguide/components.html",
        {
            "section": "styleguide",
            "colours": [name for name, value in tokens.items() if "light-dark(#" in value],
            "sizes": [name for name in tokens if name.startswith("--gap-")],
            "series": SERIES,
            "states": Job.State.choices,
            "qualities": JobStatistics.Quality.choices,
            "table": Table(
                "Sample of a wide table",
                columns.COLUMNS[:24],
                samples.jobs(),
                sort="-node_count",
                address="#tables".format,
            ),
            "figures": samples.figures(),
            "refused": JobFilter({"nodes_min": "many"}, queryset=Job.objects.none()).form,
            "now": timezone.now(),
            "pages": Paginator(range(500), 50).page(4),
        },
    )
