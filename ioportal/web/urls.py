"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from ioportal.web.common import palette
from ioportal.web.flags import views as flags
from ioportal.web.home import views as home
from ioportal.web.incidents import views as incidents
from ioportal.web.ingest.views import coverage, health, registration, segments, storage
from ioportal.web.jobs import exports, list_views
from ioportal.web.jobs import views as job
from ioportal.web.overview import views as overview
from ioportal.web.panda import views as panda
from ioportal.web.people import views as people
from ioportal.web.populations import views as populations
from ioportal.web.rules import views as rules
from ioportal.web.search import views as search
from ioportal.web.servers import views as servers
from ioportal.web.styleguide import views as styleguide
from ioportal.web.trends import views as trends

urlpatterns = [
    path("", home.home, name="home"),
    path("incidents/", incidents.incident_list, name="incident_list"),
    path("incidents/keep/", incidents.keep, name="keep_incident"),
    path("incidents/range/", incidents.incident_range, name="incident_range"),
    path("incidents/<int:pk>/", incidents.incident, name="incident"),
    path("overview/", overview.page, name="overview"),
    path("overview/<slug:name>/", overview.section, name="overview_section"),
    path("flags/", flags.flag_list, name="flag_list"),
    path("flags/<int:pk>/", flags.flag, name="flag"),
    path("flags/<int:pk>/history/", flags.history, name="flag_history"),
    path("flags/<int:pk>/peers/", flags.flag_peers, name="flag_peers"),
    path("load/", home.load, name="load"),
    path("search/", search.search, name="search"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
    path("jobs/", list_views.job_list, name="job_list"),
    path("jobs/<int:pk>/", job.detail, name="job"),
    path("jobs/<int:pk>/rpcs/", exports.rpcs, name="job_rpcs"),
    path("jobs/<int:pk>/peers/", exports.standings, name="job_peers"),
    path("jobs/<int:pk>/panda/", exports.panda, name="job_panda"),
    path("jobs/<int:pk>/timelines/<slug:name>/", exports.timeline, name="job_timeline"),
    path("jobs/<slug:cluster>/<str:batch_id>/", job.find, name="find_job"),
    path("panda/", panda.panda_list, name="panda_list"),
    path("panda/<slug:cluster>/<int:panda_id>/", panda.panda_job, name="panda_job"),
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
    path("rules/", rules.rule_list, name="rule_list"),
    path("rules/<slug:code>/", rules.rule, name="rule"),
    path(
        "rules/<slug:code>/thresholds/<int:pk>/",
        rules.withdraw_thresholds,
        name="withdraw_thresholds",
    ),
    path("rules/<slug:code>/back-tests/<int:pk>/", rules.back_test, name="back_test"),
    path(
        "rules/<slug:code>/back-tests/<int:pk>/stop/", rules.stop_back_test, name="stop_back_test"
    ),
    path("servers/", servers.server_list, name="server_list"),
    path("servers/<str:name>/", servers.server, name="server"),
    path("servers/<str:name>/senders/", servers.who_sent, name="server_senders"),
    path("servers/<str:name>/charts/<slug:chart>/", servers.chart, name="server_chart"),
    path("ingest/", segments.segment_list, name="segment_list"),
    path("ingest/segments/<int:pk>/", segments.segment, name="segment"),
    path("ingest/coverage/", coverage.coverage, name="coverage"),
    path("ingest/health/", health.health, name="health"),
    path("ingest/storage/", storage.storage, name="storage"),
    path("ingest/nids/", segments.nids, name="unregistered_nids"),
    path("ingest/tables/", registration.tables, name="site_tables"),
    path("ingest/pending/", segments.pending, name="pending_ids"),
    path("palette-<slug:version>.css", palette.stylesheet, name="palette"),
]
