"""Whatever the address: nobody stores what is private, and no character of a page is hidden."""

import io
import re
from unicodedata import category

import pytest
from django.core.management import call_command
from django.urls import URLPattern, get_resolver

from ioportal.site.models import Cluster
from ioportal.web.common import palette
from tests.web.reading import csv_of, json_of, text_of

SAMPLES = {"int": "1", "slug": "x", "str": "x", "path": "x", "uuid": "x"}
HIDDEN = "\x1b[31m\x85\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\u3164\ufeff"
SHOWN = (
    "\\x1b[31m\\x85\\u200b\\u200e\\u200f\\u2028\\u2029\\u202a\\u202e\\u2060\\u2066\\u2069\\u3164"
    "\\ufeff"
)


def _routes(patterns, prefix="/"):
    for pattern in patterns:
        route = prefix + str(pattern.pattern).removeprefix("^").removesuffix("$")
        if isinstance(pattern, URLPattern):
            yield re.sub(r"\(.*\)|<(\w+):\w+>", lambda m: SAMPLES[m[1] or "str"], route)
        else:
            yield from _routes(pattern.url_patterns, route)


def test_no_response_is_stored_but_what_is_the_same_for_everybody(client, sam):
    routes = {*_routes(get_resolver().url_patterns), "/healthz", "/readyz", "/nothing/"}
    public = {"/palette-x.css"}
    assert {"/", "/jobs/", "/overview/x/", "/api/v1/metrics", "/admin/login/"} <= routes

    for log_in in (False, True):
        if log_in:
            client.force_login(sam)
        for route in sorted(routes - public):
            if route == "/logout/":
                continue
            policy = client.get(route).get("Cache-Control", "")

            assert {"private", "no-store"} <= set(policy.split(", ")), (route, policy)
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


def test_an_unchanged_section_of_the_overview_is_still_not_sent_again(as_alice):
    first = as_alice.get("/overview/rpcs/?start=2017-07-05T12:00Z&end=2017-07-05T13:00Z")
    again = as_alice.get(
        "/overview/rpcs/?start=2017-07-05T12:00Z&end=2017-07-05T13:00Z",
        headers={"If-None-Match": first["ETag"]},
    )

    assert (first.status_code, again.status_code) == (200, 304)
    assert again["Cache-Control"] == "private, no-store"


@pytest.fixture
def hostile_job(new_job):
    """A job whose every text hides characters."""
    return new_job({"opens": 7}, name=HIDDEN, queue=HIDDEN, owner=HIDDEN, project=HIDDEN)


def test_no_page_hides_a_character(as_staff, hostile_job, cluster):
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


def test_a_filter_that_is_sent_again_has_its_characters(as_staff, hostile_job):
    page = text_of(as_staff.get("/jobs/", {"name": "a\u202eb"}))

    assert 'value="a\u202eb"' in page


def test_json_has_the_stored_characters(as_staff, hostile_job):
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
def test_a_csv_cell_is_no_formula_whatever_precedes_it(as_staff, new_job, name):
    new_job(name=name)

    [row] = csv_of(as_staff.get("/jobs/?format=csv"))

    assert row["name"] == f"'{name}"


def test_a_csv_cell_that_is_no_formula_is_unchanged(as_staff, new_job):
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
