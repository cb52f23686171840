"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from ioportal.web.views import (
    coverage,
    home,
    ingest,
    job,
    job_twins,
    jobs,
    overview,
    palette,
    people,
    populations,
    search,
    storage,
    styleguide,
    trends,
)

urlpatterns = [
    path("", home.home, name="home"),
    path("overview/", overview.page, name="overview"),
    path("overview/<slug:name>/", overview.section, name="overview_section"),
    path("load/", home.load, name="load"),
    path("search/", search.search, name="search"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
    path("jobs/", jobs.job_list, name="job_list"),
    path("jobs/<int:pk>/", job.detail, name="job"),
    path("jobs/<int:pk>/rpcs/", job_twins.rpcs, name="job_rpcs"),
    path("jobs/<int:pk>/peers/", job_twins.standings, name="job_peers"),
    path("jobs/<int:pk>/panda/", job_twins.panda, name="job_panda"),
    path("jobs/<int:pk>/timelines/<slug:name>/", job_twins.timeline, name="job_timeline"),
    path("jobs/<slug:cluster>/<str:batch_id>/", job.find, name="find_job"),
    path("populations/", populations.unnamed, name="populations"),
    path("populations/further/", populations.further, name="further_metrics"),
    path("populations/histograms/<slug:metric>/", populations.histogram, name="histogram"),
    path("populations/<slug:slug>/", populations.named, name="population"),
    path("trends/", trends.trends, name="trends"),
    path("trends/<slug:name>/", trends.trend, name="trend"),
    path("users/", people.users, name="users"),
    path("users/<path:name>/", people.user, name="user"),
    path("projects/", people.projects, name="projects"),
    path("projects/<path:name>/", people.project, name="project"),
    path("ingest/", ingest.segment_list, name="segment_list"),
    path("ingest/segments/<int:pk>/", ingest.segment, name="segment"),
    path("ingest/coverage/", coverage.coverage, name="coverage"),
    path("ingest/storage/", storage.storage, name="storage"),
    path("ingest/nids/", ingest.nids, name="unregistered_nids"),
    path("ingest/pending/", ingest.pending, name="pending_ids"),
    path("palette-<slug:version>.css", palette.stylesheet, name="palette"),
]
