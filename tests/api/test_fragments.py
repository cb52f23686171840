"""The fragment of a page for other portals: own jobs and cases."""

import re

import pytest
from django.contrib.auth.models import Group, User

from tests.conftest import REPOSITORY
from tests.web import rows
from tests.web.conftest import NOON
from tests.web.reading import words_of

HOSTILE = '<script>"x"</script>\u202e\x1b'


@pytest.fixture
def fragment(client, secret_of):
    """Request the fragment with the token of a user."""

    def read(user="alice"):
        headers = {"Authorization": f"Token {secret_of(user)}"}
        return client.get("/api/v1/fragments/jobs/", headers=headers)

    return read


def test_own_jobs_have_figures_and_links(new_job, fragment, settings):
    settings.PORTAL_URL = "https://io.example.org"
    job = new_job({"metadata_operations": 3_000_000, "peak_metadata_rate": 1_234.5})
    case = rows.flag_job(job).case
    new_job(started_at=None, ended_at=None, state="pending", name=HOSTILE)

    answer = fragment()

    html, words = answer.content.decode(), words_of(answer)
    assert "3567000 relax completed 5 Jul 2017 12:00 UTC 3,000,000 1,234 good" in words
    assert "Excessive metadata operations by jobs named relax (3,000,000 operations)" in words
    assert f'<a href="https://io.example.org/jobs/{job.pk}/">3567000</a>' in html
    assert f'<a href="https://io.example.org/cases/{case.pk}/">' in html
    assert "&lt;script&gt;&quot;x&quot;&lt;/script&gt;\\u202e\\x1b" in html
    assert not re.search(r"<(script|style|link|iframe)|\b(style|on\w+)=", html)
    assert all(
        link.startswith("https://io.example.org/") for link in re.findall('href="(.*?)"', html)
    )


def test_only_own_jobs_are_listed_also_to_staff_and_projects(new_job, fragment, secret_of):
    rows.flag_job(new_job({}))
    secret_of("bob")
    User.objects.get(username="bob").groups.add(Group.objects.create(name="PHY12"))
    secret_of("sam", is_staff=True)

    for user in ("bob", "sam", "charlie"):
        words = words_of(fragment(user))

        assert f"Jobs of {user} appear here" in words
        assert "3567000" not in words
        assert "Excessive" not in words


def test_queries_do_not_grow_with_jobs(new_job, client, secret_of, django_assert_num_queries):
    headers = {"Authorization": f"Token {secret_of('alice')}"}

    for more, rows_of_table in ((2, 3), (13, 11)):
        for _ in range(more):
            rows.flag_job(new_job({}, started_at=NOON))
        client.get("/api/v1/fragments/jobs/", headers=headers)
        with django_assert_num_queries(13):
            answer = client.get("/api/v1/fragments/jobs/", headers=headers)

        assert answer.content.count(b"<tr>") == rows_of_table


def test_the_sample_widget_requests_the_fragment(client, db):
    widget = (REPOSITORY / "deploy/ondemand/_ioportal_jobs.html.erb").read_text()
    [address] = re.findall(r"Get\.new\('(.*?)'\)", widget)

    assert client.get(address).json()["code"] == "token"
