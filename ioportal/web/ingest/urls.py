"""Addresses of the ingest pages."""

from django.urls import path

from ioportal.web.ingest import coverage, health, registration, storage, streams, views

urlpatterns = [
    path("", views.segment_list, name="segment_list"),
    path("files/<int:pk>/", views.segment, name="segment"),
    path("coverage/", coverage.coverage_page, name="coverage"),
    path("coverage/unexplained/", coverage.unexplained_page, name="unexplained_operations"),
    path("health/", health.health, name="health"),
    path("streams/", streams.streams, name="streams"),
    path("streams/<int:pk>/", streams.stream, name="stream"),
    path("storage/", storage.storage, name="storage"),
    path("nids/", views.nids, name="unregistered_nids"),
    path("tables/", registration.tables, name="site_tables"),
    path("pending/", views.pending, name="pending_ids"),
]
