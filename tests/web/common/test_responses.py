"""All responses: caching headers, and hidden characters in pages."""

import io
import re
from unicodedata import category

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, transaction

from ioportal.site.models import Cluster
from ioportal.web.common import outages, palette
from tests.web.reading import csv_of, json_of, text_of
from tests.web.routing import addresses

HIDDEN = "\x1b[31m\x85\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\u3164\ufeff"
SHOWN = (
    "\\x1b[31m\\x85\\u200b\\u200e\\u200f\\u2028\\u2029\\u202a\\u202e\\u2060\\u2066\\u2069\\u3164"
    "\\ufeff"
)


def test_only_public_responses_may_be_stored(client, sam):
    paths = {*addresses(), "/healthz", "/readyz", "/nothing/"} - {"/palette-1.css", "/logout/"}

    for log_in in (False, True):
        if log_in:
            client.force_login(sam)
        for path in sorted(paths):
            policy = client.get(path).get("Cache-Control", "")

            rules = set(policy.split(", "))
            assert "private" in rules, (path, policy)
            # Responses of the API are validated again after half a minute.
            assert "no-store" in rules or path.startswith("/api/"), (path, policy)
    assert client.get(palette.address())["Cache-Control"] == "public, immutable, max-age=31536000"


def test_parts_and_exports_of_pages_are_private_too(as_alice):
    for query, headers in (
        ("", {"HX-Request": "true"}),
        ("?format=csv", {}),
        ("?format=json", {}),
        ("?format=xml", {}),
    ):
        answer = as_alice.get(f"/jobs/{query}", headers=headers)

        assert answer["Cache-Control"] == "private, no-store", query
        assert {"Cookie", "HX-Request"} <= set(answer["Vary"].split(", ")), query


def test_an_unchanged_section_of_the_overview_is_not_sent_again(as_alice):
    first = as_alice.get("/overview/rpcs/?start=2017-07-05T12:00Z&end=2017-07-05T13:00Z")
    again = as_alice.get(
        "/overview/rpcs/?start=2017-07-05T12:00Z&end=2017-07-05T13:00Z",
        headers={"If-None-Match": first["ETag"]},
    )

    assert (first.status_code, again.status_code) == (200, 304)
    assert again["Cache-Control"] == "private, no-store"


@pytest.fixture
def hostile_job(new_job):
    """A job with hidden characters in all texts."""
    return new_job({"opens": 7}, name=HIDDEN, queue=HIDDEN, owner=HIDDEN, project=HIDDEN)


def test_pages_show_hidden_characters_as_codes(as_staff, hostile_job, cluster):
    Cluster.objects.filter(pk=cluster.pk).update(name=HIDDEN)
    pages = {
        "/",
        "/jobs/",
        f"/jobs/{hostile_job.pk}/",
        "/populations/",
        "/trends/",
        "/users/",
        f"/users/{HIDDEN}/",
        f"/projects/{HIDDEN}/",
        f"/search/?q={HIDDEN}",
        "/rules/",
        "/admin/site/cluster/",
        f"/jobs/?user={HIDDEN}&format=xml",
    }

    for page in sorted(pages):
        text = text_of(as_staff.get(page))
        outside_of_fields = re.sub(r'value="[^"]*"', "", text)

        hidden = [c for c in outside_of_fields if category(c) in {"Cc", "Cf", "Zl", "Zp"}]
        assert set(hidden) <= {"\n"}, page
    page = text_of(as_staff.get(f"/users/{HIDDEN}/"))
    assert SHOWN in page[page.index("<title>") : page.index("</title>")]


def test_form_values_preserve_characters(as_staff, hostile_job):
    page = text_of(as_staff.get("/jobs/", {"name": "a\u202eb"}))

    assert 'value="a\u202eb"' in page


def test_json_preserves_characters(as_staff, hostile_job):
    [row] = json_of(as_staff.get("/jobs/?format=json"))["rows"]

    assert row["name"] == HIDDEN


@pytest.mark.parametrize(
    "name",
    [
        "=1+1",
        " \t=1+1",
        "\n=1+1",
        "\u3000\u00a0=1+1",
        "\ufeff\u200b@SUM(1)",
        "\uff1d1+1",
        "\uff0b1",
        " \uff0d1",
        "\uff20x",
        "\trelax",
        "\nrelax",
    ],
)
def test_csv_formulas_are_escaped_after_any_prefix(as_staff, new_job, name):
    new_job(name=name)

    [row] = csv_of(as_staff.get("/jobs/?format=csv"))

    assert row["name"] == f"'{name}"


def test_csv_cells_without_formula_are_unchanged(as_staff, new_job):
    new_job(name=" a = b ")

    assert csv_of(as_staff.get("/jobs/?format=csv"))[0]["name"] == " a = b "


def test_commands_show_hidden_characters_as_codes(db, cluster):
    errors = io.StringIO()
    out = io.StringIO()
    secret = io.StringIO()
    call_command("token", "create", "metrics", "--name", HIDDEN, stdout=secret, stderr=errors)
    call_command("token", "list", stdout=out)

    assert SHOWN in out.getvalue()
    assert out.getvalue().endswith("\n")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("/jobs/1517/rpcs/", "Reload this page", id="nothing can be reduced"),
        pytest.param("/jobs/?page=5000", "page: 5000", id="a late page"),
        pytest.param(
            "/jobs/1517/rpcs/?format=json", "staff can see on /ingest/health/", id="an export"
        ),
    ],
)
def test_a_page_that_took_too_long_does_not_repeat_itself(db, rf, path, words):
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(1)")
    except OperationalError:
        answer = outages.failed(rf.get(path))

    assert answer.status_code == 503
    assert words in text_of(answer)
    assert "Retry-After" not in answer
    assert "refresh" not in text_of(answer)
    assert "busy" not in text_of(answer)
