"""The frame of all pages: static files, palette, error pages, exports."""

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.template.loader import render_to_string
from django.urls import reverse

from ioportal.jobs import job_facts
from ioportal.metrics import BY_NAME
from ioportal.web.common import palette
from tests.web.reading import text_of, words_of


def test_every_metric_is_on_the_job_page_once():
    listed = [name for names in job_facts.GROUPS.values() for name in names]

    assert sorted(listed) == sorted(BY_NAME)


def test_only_plotly_is_served_from_its_package():
    assert finders.find("plotly.min.js").endswith("package_data/plotly.min.js")
    assert finders.find("widgetbundle.js") is None


def test_static_files_exist_and_have_hashed_names(settings, tmp_path):
    settings.STATIC_ROOT = str(tmp_path)
    storage = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": storage}}
    call_command("collectstatic", interactive=False, verbosity=0)

    assert list(tmp_path.glob("plotly.min.*.js"))
    for name in ("400", "403_csrf", "500"):
        assert "css/base." in render_to_string(f"{name}.html")


def test_the_palette_is_immutable_by_url(client):
    answer = client.get(palette.address())

    assert answer["Content-Type"] == "text/css"
    assert "immutable" in answer["Cache-Control"]
    assert "--series-1" in text_of(answer)
    assert palette.address() in text_of(client.get(reverse("login")))


PAGES = ["/jobs/", "/jobs/{job}/"]
TWINS = [
    "/populations/",
    "/populations/other-metrics/",
    "/populations/histograms/opens/",
    "/load-ramp/bins/",
    "/load-ramp/over-time/",
    "/trends/jobs-ended/",
    "/trends/metadata_operations/",
    "/users/",
    "/projects/",
    "/ranking/",
    "/load/",
    "/jobs/{job}/timelines/metadata/",
    "/jobs/{job}/rpcs/",
    "/jobs/{job}/similar-jobs/",
    "/jobs/{job}/panda/",
    "/ingest/",
    "/ingest/files/{segment}/",
    "/ingest/coverage/",
    "/ingest/nids/",
    "/ingest/pending/",
    "/servers/",
    "/servers/mds1/",
]


@pytest.fixture
def addresses(db, heavy_job):
    """Addresses of all pages and exports of the job."""
    names = {"job": heavy_job.pk, "segment": heavy_job.records.get().segment_id}
    return [path.format_map(names) for path in (*PAGES, *TWINS)]


def test_an_unknown_format_is_rejected(as_staff, addresses):
    for path in addresses:
        answer = as_staff.get(f"{path}?format=xml")

        assert answer.status_code == 400, path
        assert "'xml' is not available here." in answer.json()["errors"]["format"][0]


def test_every_table_has_exports(as_staff, addresses):
    for path in ("/jobs/", *addresses[len(PAGES) :]):
        for form, kind in (("csv", "text/csv; charset=utf-8"), ("json", "application/json")):
            answer = as_staff.get(f"{path}?format={form}")

            assert (answer.status_code, answer["Content-Type"]) == (200, kind), path


def test_pages_accept_head_requests(as_staff, addresses):
    for path in (*addresses, "/", palette.address()):
        assert as_staff.head(path).status_code in {200, 302}, path


@pytest.mark.django_db
def test_a_missing_page_explains_visibility(as_alice):
    answer = as_alice.get("/nothing/")

    assert answer.status_code == 404
    assert 'href="/jobs/"' in text_of(answer)
    assert "Jobs of your account and your projects are visible" in words_of(answer)


def test_staff_get_a_short_explanation(as_staff):
    answer = as_staff.get("/nothing/")

    assert answer.status_code == 404
    assert "ask the staff" not in words_of(answer)
