"""What surrounds every page: static files, the palette, errors, metrics that none forgets."""

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.template.loader import render_to_string
from django.urls import reverse

from ioportal.analysis.metrics import BY_NAME
from ioportal.reporting import job_facts
from ioportal.web.common import palette
from tests.web.reading import text_of, words_of


def test_every_metric_stands_on_the_job_page_once():
    shown = [name for names in job_facts.GROUPS.values() for name in names]

    assert sorted(shown) == sorted(BY_NAME)


def test_plotly_comes_from_its_package_and_nothing_else_does():
    assert finders.find("plotly.min.js").endswith("package_data/plotly.min.js")
    assert finders.find("widgetbundle.js") is None


def test_all_static_files_are_there_and_get_names_to_cache(settings, tmp_path):
    settings.STATIC_ROOT = str(tmp_path)
    storage = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": storage}}
    call_command("collectstatic", interactive=False, verbosity=0)

    assert list(tmp_path.glob("plotly.min.*.js"))
    for name in ("400", "403_csrf", "500"):
        assert "css/base." in render_to_string(f"{name}.html")


def test_the_palette_is_kept_for_good_and_changes_its_address(client):
    answer = client.get(palette.address())

    assert answer["Content-Type"] == "text/css"
    assert "immutable" in answer["Cache-Control"]
    assert "--series-1" in text_of(answer)
    assert palette.address() in text_of(client.get(reverse("login")))


PAGES = ["/jobs/", "/jobs/{job}/"]
TWINS = [
    "/populations/",
    "/populations/further/",
    "/populations/histograms/opens/",
    "/trends/jobs-ended/",
    "/trends/metadata_operations/",
    "/users/",
    "/projects/",
    "/load/",
    "/jobs/{job}/timelines/metadata/",
    "/jobs/{job}/rpcs/",
    "/jobs/{job}/peers/",
    "/jobs/{job}/panda/",
    "/ingest/",
    "/ingest/segments/{segment}/",
    "/ingest/coverage/",
    "/ingest/nids/",
    "/ingest/pending/",
    "/servers/",
    "/servers/mds1/",
]


@pytest.fixture
def addresses(db, heavy_job):
    """Every page and twin, of the job that ran."""
    names = {"job": heavy_job.pk, "segment": heavy_job.records.get().segment_id}
    return [path.format_map(names) for path in (*PAGES, *TWINS)]


def test_a_format_that_is_not_offered_is_refused(as_staff, addresses):
    for path in addresses:
        answer = as_staff.get(f"{path}?format=xml")

        assert answer.status_code == 400, path
        assert "'xml' is not offered here: " in answer.json()["errors"]["format"][0]


def test_every_table_has_its_twins(as_staff, addresses):
    for path in ("/jobs/", *addresses[len(PAGES) :]):
        for form, kind in (("csv", "text/csv; charset=utf-8"), ("json", "application/json")):
            answer = as_staff.get(f"{path}?format={form}")

            assert (answer.status_code, answer["Content-Type"]) == (200, kind), path


def test_the_head_of_every_page_may_be_asked_for(as_staff, addresses):
    for path in (*addresses, "/", palette.address()):
        assert as_staff.head(path).status_code in {200, 302}, path


@pytest.mark.django_db
def test_an_address_of_nothing_is_a_page_that_helps(as_alice):
    answer = as_alice.get("/nothing/")

    assert answer.status_code == 404
    assert 'href="/jobs/"' in text_of(answer)
    assert "neither yours nor your projects'" in words_of(answer)


def test_staff_are_not_sent_to_staff(as_staff):
    answer = as_staff.get("/nothing/")

    assert answer.status_code == 404
    assert "ask them" not in words_of(answer)
