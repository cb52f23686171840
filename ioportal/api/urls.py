"""URLs of the API."""

from django.contrib.auth.decorators import login_not_required
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from ioportal.api import (
    bounces,
    cases,
    documentation,
    fragments,
    ingest,
    job_reports,
    metrics,
    mitigations,
    problems,
)
from ioportal.api.look_up import jobs as look_up
from ioportal.api.openapi import Api
from ioportal.api.panda import jobs as panda
from ioportal.api.responses import finished
from ioportal.api.tables import views as tables

# Without ninja's documentation, whose scripts come from other sites: `documentation` has a page.
api = Api(title="ioportal", version="1", docs_url=None, urls_namespace="api")
api.add_router("/bounces", bounces.router)
api.add_router("/cases", cases.router)
api.add_router("/fragments", fragments.router)
api.add_router("/ingest", ingest.router)
api.add_router("/jobs", look_up.router)
api.add_router("/jobs", job_reports.router)
api.add_router("", tables.router)
api.add_router("/panda", panda.router)
api.add_router("/metrics", metrics.router)
api.add_router("/mitigations", mitigations.router)
api.add_router("/experiments", "ioportal.experiments.endpoints.router")
problems.add_handlers(api)

_patterns, _app_name, _namespace = api.urls
for _pattern in _patterns:
    # Tokens protect these views.
    _pattern.callback = login_not_required(finished(_pattern.callback))  # type: ignore[arg-type]
urlpatterns = [
    path("v1/docs/", documentation.page, {"api": api}, name="api_docs"),
    path("v1/", (_patterns, _app_name, _namespace)),
    path("<path:address>", login_not_required(csrf_exempt(finished(problems.missing)))),
]
