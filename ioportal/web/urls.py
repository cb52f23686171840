"""Addresses of the pages."""

from django.urls import path

from ioportal.web.cases import views as cases
from ioportal.web.common import palette
from ioportal.web.comparisons import views as comparisons
from ioportal.web.flags import views as flags
from ioportal.web.home import views as home
from ioportal.web.incidents import views as incidents
from ioportal.web.ingest import coverage, health, registration, storage, streams
from ioportal.web.ingest import views as ingest
from ioportal.web.jobs import views as jobs
from ioportal.web.load_ramp import views as load_ramp
from ioportal.web.mails import answers
from ioportal.web.mails import views as mails
from ioportal.web.mitigations import views as mitigations
from ioportal.web.overview import views as overview
from ioportal.web.panda import views as panda
from ioportal.web.people import views as people
from ioportal.web.populations import views as populations
from ioportal.web.ranking import views as ranking
from ioportal.web.rules import views as rules
from ioportal.web.search import views as search
from ioportal.web.servers import views as servers
from ioportal.web.styleguide import views as styleguide
from ioportal.web.trends import views as trends

urlpatterns = [
    path("", home.home, name="home"),
    path("now/", home.now, name="now"),
    path("observed/", home.observed, name="observed"),
    path("load/", home.load, name="load"),
    path("users/", people.users, name="users"),
    path("users/<path:name>/", people.user, name="user"),
    path("projects/", people.projects, name="projects"),
    path("projects/<path:name>/", people.project, name="project"),
    path("answers/<str:key>/<slug:kind>/", answers.answer, name="answer"),
    path("cases/", cases.case_list, name="case_list"),
    path("cases/<int:pk>/", cases.case, name="case"),
    path("cases/<int:pk>/answer/", cases.answer, name="case_answer"),
    path("cases/<int:pk>/draft/", cases.draft_mail, name="case_draft"),
    path("cases/<int:pk>/flags/", cases.case_flags, name="case_flags"),
    path("cases/<int:pk>/weeks/", cases.case_weeks, name="case_weeks"),
    path("compare/", comparisons.compare, name="compare"),
    path("compare/charts/<slug:name>/", comparisons.compare_chart, name="compare_chart"),
    path("compare/jobs/", comparisons.compare_jobs, name="compare_jobs"),
    path("compare/jobs/<slug:name>/", comparisons.compare_jobs_chart, name="compare_jobs_chart"),
    path("compare/presets/<slug:name>/", comparisons.compare_preset, name="compare_preset"),
    path("flags/<int:pk>/", flags.flag, name="flag"),
    path("flags/<int:pk>/history/", flags.flag_history, name="flag_history"),
    path("flags/<int:pk>/similar-jobs/", flags.flag_similar_jobs, name="flag_similar_jobs"),
    path("incidents/", incidents.incident_list, name="incident_list"),
    path("incidents/save/", incidents.save_incident, name="save_incident"),
    path("incidents/impact/", incidents.impact_analysis, name="impact_analysis"),
    path("incidents/impact/<str:server>/times/", incidents.request_times, name="request_times"),
    path("incidents/impact/<str:server>/queue/", incidents.queue, name="queue"),
    path("incidents/<int:pk>/", incidents.incident, name="incident"),
    path("ingest/", ingest.segment_list, name="segment_list"),
    path("ingest/files/<int:pk>/", ingest.segment, name="segment"),
    path("ingest/coverage/", coverage.coverage_page, name="coverage"),
    path(
        "ingest/coverage/unexplained/",
        coverage.unexplained_page,
        name="unexplained_operations",
    ),
    path("ingest/health/", health.health, name="health"),
    path("ingest/streams/", streams.streams, name="streams"),
    path("ingest/streams/<int:pk>/", streams.stream, name="stream"),
    path("ingest/storage/", storage.storage, name="storage"),
    path("ingest/nids/", ingest.nids, name="unregistered_nids"),
    path("ingest/tables/", registration.tables, name="site_tables"),
    path("ingest/pending/", ingest.pending, name="pending_ids"),
    path("jobs/", jobs.job_list, name="job_list"),
    path("jobs/<int:pk>/", jobs.job, name="job"),
    path("jobs/<int:pk>/rpcs/", jobs.rpcs, name="job_rpcs"),
    path("jobs/<int:pk>/similar-jobs/", jobs.similar_jobs, name="similar_jobs"),
    path("jobs/<int:pk>/panda/", jobs.panda_jobs, name="job_panda"),
    path("jobs/<int:pk>/timelines/<slug:name>/", jobs.timeline, name="job_timeline"),
    path("jobs/<slug:cluster>/<str:batch_id>/", jobs.find_job, name="find_job"),
    path("load-ramp/", load_ramp.load_ramp, name="load_ramp"),
    path("load-ramp/over-time/", load_ramp.over_time, name="load_ramp_over_time"),
    path("load-ramp/bins/", load_ramp.bins, name="load_ramp_bins"),
    path("mails/", mails.mail_list, name="mail_list"),
    path("mails/preview/", mails.preview, name="mail_preview"),
    path("mails/preview/html/", answers.preview_html, name="mail_preview_html"),
    path("mails/<int:pk>/", mails.mail, name="mail"),
    path("mails/<int:pk>/html/", answers.html, name="mail_html"),
    path("mitigations/", mitigations.mitigation_list, name="mitigation_list"),
    path("mitigations/log/", mitigations.log_mitigation, name="log_mitigation"),
    path("mitigations/what-worked/", mitigations.catalogue, name="what_worked"),
    path("mitigations/<int:pk>/", mitigations.mitigation, name="mitigation"),
    path("mitigations/<int:pk>/edit/", mitigations.edit_mitigation, name="edit_mitigation"),
    path("overview/", overview.page, name="overview"),
    path("overview/<slug:name>/", overview.section, name="overview_section"),
    path("panda/", panda.panda_list, name="panda_list"),
    path("panda/<slug:cluster>/<int:panda_id>/", panda.panda_job, name="panda_job"),
    path("populations/", populations.filtered_population, name="populations"),
    path("populations/other-metrics/", populations.other_metrics, name="other_metrics"),
    path("populations/histograms/<slug:metric>/", populations.histogram, name="histogram"),
    path("populations/<slug:slug>/", populations.saved_population, name="population"),
    path("ranking/", ranking.ranking, name="ranking"),
    path("rules/", rules.rule_list, name="rule_list"),
    path("rules/<slug:code>/", rules.rule, name="rule"),
    path(
        "rules/<slug:code>/thresholds/<int:pk>/",
        rules.withdraw_thresholds,
        name="withdraw_thresholds",
    ),
    path("rules/<slug:code>/back-tests/<int:pk>/", rules.back_test, name="back_test"),
    path(
        "rules/<slug:code>/back-tests/<int:pk>/stop/",
        rules.stop_back_test,
        name="stop_back_test",
    ),
    path("search/", search.search, name="search"),
    path("servers/", servers.server_list, name="server_list"),
    path("servers/<str:name>/", servers.server, name="server"),
    path("servers/<str:name>/clients/", servers.clients, name="server_clients"),
    path("servers/<str:name>/capacity/", servers.capacity, name="server_capacity"),
    path(
        "servers/<str:name>/capacity/charts/<slug:chart>/",
        servers.capacity_chart,
        name="server_capacity_chart",
    ),
    path("servers/<str:name>/charts/<slug:chart>/", servers.chart, name="server_chart"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
    path("trends/", trends.trends, name="trends"),
    path("trends/change-points/", trends.change_points, name="change_points"),
    path("trends/<slug:name>/", trends.trend, name="trend"),
    path("palette-<slug:version>.css", palette.stylesheet, name="palette"),
]
