"""URLs of the API."""

from django.urls import path
from ninja import NinjaAPI

from ioportal.api import ingest, metrics, problems

# No interactive documentation: its pages load scripts from other sites.
api = NinjaAPI(title="ioportal", version="1", docs_url=None, urls_namespace="api")
api.add_router("/ingest", ingest.router)
api.add_router("/metrics", metrics.router)
problems.add_handlers(api)

urlpatterns = [path("v1/", api.urls)]
