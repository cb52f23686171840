"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from ioportal.web.views import jobs, palette

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="job_list"), name="home"),
    path("jobs/", jobs.job_list, name="job_list"),
    path("jobs/<int:pk>/", jobs.job_list, name="job"),
    path("ingest/", jobs.job_list, name="segment_list"),
    path("palette-<slug:version>.css", palette.stylesheet, name="palette"),
]
