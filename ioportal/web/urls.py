"""Addresses of the pages."""

from django.urls import include, path

from ioportal.web.common import palette
from ioportal.web.mails import answers

urlpatterns = [
    path("", include("ioportal.web.home.urls")),
    path("", include("ioportal.web.people.urls")),
    path("answers/<str:key>/<slug:kind>/", answers.answer, name="answer"),
    path("cases/", include("ioportal.web.cases.urls")),
    path("compare/", include("ioportal.web.comparisons.urls")),
    path("experiments/", include("ioportal.experiments.pages.urls")),
    path("flags/", include("ioportal.web.flags.urls")),
    path("incidents/", include("ioportal.web.incidents.urls")),
    path("ingest/", include("ioportal.web.ingest.urls")),
    path("jobs/", include("ioportal.web.jobs.urls")),
    path("load-ramp/", include("ioportal.web.load_ramp.urls")),
    path("mails/", include("ioportal.web.mails.urls")),
    path("mitigations/", include("ioportal.web.mitigations.urls")),
    path("model/", include("ioportal.experiments.model_page.urls")),
    path("overview/", include("ioportal.web.overview.urls")),
    path("panda/", include("ioportal.web.panda.urls")),
    path("populations/", include("ioportal.web.populations.urls")),
    path("ranking/", include("ioportal.web.ranking.urls")),
    path("rules/", include("ioportal.web.rules.urls")),
    path("search/", include("ioportal.web.search.urls")),
    path("servers/", include("ioportal.web.servers.urls")),
    path("styleguide/", include("ioportal.web.styleguide.urls")),
    path("trends/", include("ioportal.web.trends.urls")),
    path("palette-<slug:version>.css", palette.stylesheet, name="palette"),
]
