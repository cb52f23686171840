"""Sessions, and permissions of exports."""

from urllib.parse import quote

import pytest

from tests.web.reading import words_of

EXPORTS = [
    "/jobs/{job}/?format=json",
    "/jobs/{job}/timelines/rpcs/?format=json",
    "/jobs/{job}/rpcs/?format=csv",
    "/jobs/{job}/panda/?format=json",
    "/cases/{case}/?format=json",
    "/cases/{case}/flags/?format=csv",
    "/flags/{flag}/?format=json",
]
STAFF_EXPORTS = [
    "/incidents/impact/?format=csv",
    "/ingest/?format=csv",
    "/ingest/pending/?format=json",
    "/load/?format=csv",
]


@pytest.mark.parametrize(
    ("person", "status", "staff_status"),
    [("alice", 200, 403), ("bob", 200, 403), ("charlie", 404, 403), ("sam", 200, 200)],
)
def test_exports_have_the_permissions_of_their_pages(
    client, page_names, request, person, status, staff_status
):
    client.force_login(request.getfixturevalue(person))

    for paths, expected in ((EXPORTS, status), (STAFF_EXPORTS, staff_status)):
        for path in paths:
            assert client.get(path.format_map(page_names)).status_code == expected, path


def test_htmx_redirects_to_the_log_in_and_back_to_the_page(client, db):
    for route in ("/jobs/?user=alice", "/jobs/1/"):
        answer = client.get(route, headers={"HX-Request": "true"})

        assert answer.status_code == 200, route
        assert answer["HX-Redirect"] == f"/login/?next={quote(route)}", route


@pytest.mark.parametrize(
    ("headers", "page"),
    [
        pytest.param({"HX-Current-URL": "http://testserver/?last=1h"}, "/?last=1h", id="a part"),
        pytest.param(
            {"HX-Current-URL": "http://testserver/", "HX-Boosted": "true"}, "/now/", id="a link"
        ),
        pytest.param({"HX-Current-URL": "http://example.org/"}, "/now/", id="another host"),
    ],
)
def test_the_log_in_leads_back_to_the_page_of_a_refreshed_part(client, db, headers, page):
    answer = client.get("/now/", headers={"HX-Request": "true", **headers})

    assert answer["HX-Redirect"] == f"/login/?next={quote(page)}"


def test_staff_pages_explain_the_refusal(as_alice):
    assert "This page is for staff" in words_of(as_alice.get("/ingest/"))


def test_logging_in_leads_to_the_home_page(client, alice):
    answer = client.post("/login/", {"username": "alice", "password": "password of alice"})

    assert answer["Location"] == "/"


def test_logging_out_leads_to_the_log_in(as_alice):
    assert as_alice.post("/logout/")["Location"] == "/login/"
    assert as_alice.get("/jobs/").status_code == 302


def test_no_page_may_run_inline_scripts(as_staff):
    policy = as_staff.get("/jobs/")["Content-Security-Policy"]

    assert "script-src 'self'" in policy
    assert "style-src 'self';" in f"{policy};"  # directives come in any order
