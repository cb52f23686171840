"""Addresses of the ingest pages."""

from django.urls import path

from ioportal.web.ingest.views import coverage, health, registration, segments, storage, streams

urlpatterns = [
    path("", segments.segment_list, name="segment_list"),
    path("files/<int:pk>/", segments.segment, name="segment"),
    path("coverage/", coverage.coverage, name="coverage"),
    path("coverage/unexplained/", coverage.unexplained, name="unexplained_operations"),
    path("health/", health.health, name="health"),
    path("streams/", streams.streams, name="streams"),
    path("streams/<int:pk>/", streams.stream, name="stream"),
    path("storage/", storage.storage, name="storage"),
    path("nids/", segments.nids, name="unregistered_nids"),
    path("tables/", registration.tables, name="site_tables"),
    path("pending/", segments.pending, name="pending_ids"),
]
