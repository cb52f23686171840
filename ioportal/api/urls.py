"""URLs of the API."""

from django.contrib.auth.decorators import login_not_required
from django.urls import path
from ninja import NinjaAPI

from ioportal.api import bounces, ingest, jobs, metrics, problems

# No interactive documentation: its pages load scripts from other sites.
api = NinjaAPI(title="ioportal", version="1", docs_url=None, urls_namespace="api")
api.add_router("/bounces", bounces.router)
api.add_router("/ingest", ingest.router)
api.add_router("/jobs", jobs.router)
api.add_router("/metrics", metrics.router)
problems.add_handlers(api)

_patterns, _app_name, _namespace = api.urls
for _pattern in _patterns:
    login_not_required(_pattern.callback)  # type: ignore[type-var]  # ninja sets it; tokens protect
urlpatterns = [path("v1/", (_patterns, _app_name, _namespace))]
