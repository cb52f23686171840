"""Credentials, limits, caches and headers of all operations of the API."""

import asyncio
import json

import pytest
from django.db import connection

from ioportal.api import authentication
from ioportal.api.look_up.fields import FIELDS
from ioportal.api.rate_limits import RateLimiter
from ioportal.asgi import application
from ioportal.core.env import networks
from tests.conftest import REPOSITORY

LOOK_UP = "/api/v1/jobs/query/?json&pandaid=11"
INSIDE, OUTSIDE, PROXY = "10.20.0.7", "192.0.2.7", "10.0.0.1"


@pytest.fixture
def get(client, secret_of):
    """Look up a job like staff."""

    def send(kind="Token", **headers):
        secret = secret_of("sam", is_staff=True)
        return client.get(LOOK_UP, headers={"Authorization": f"{kind} {secret}", **headers})

    return send


@pytest.mark.parametrize("kind", ["Token", "Bearer", "token", "BEARER"])
def test_both_kinds_of_credentials_are_accepted(get, kind):
    assert get(kind).status_code == 200


def test_an_unchanged_answer_has_no_body(get, new_job, put_inside):
    first = get()
    assert first["Cache-Control"] == "private, max-age=30"
    assert {"Authorization", "Accept"} <= {*first["Vary"].split(", ")}

    again = get(**{"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again["X-Request-ID"]

    put_inside(new_job({}), 11)
    changed = get(**{"If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert changed.json()["11"]["pandaid"] == 11


def test_requests_are_limited_by_token(get, client, secret_of, monkeypatch):
    monkeypatch.setattr(authentication, "_RATES", RateLimiter(3))

    answers = [get() for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert [answer["RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert {answer["RateLimit-Limit"] for answer in answers} == {"3"}
    assert 1 <= int(answers[3]["Retry-After"]) <= 20
    assert answers[3].json()["code"] == "rate"
    other = {"Authorization": f"Token {secret_of('alice')}"}
    assert client.get(LOOK_UP, headers=other).status_code == 200


def test_the_id_of_a_request_is_returned_if_it_is_harmless(get):
    assert get(**{"X-Request-ID": "panda-7.b"})["X-Request-ID"] == "panda-7.b"
    assert get(**{"X-Request-ID": "x\ny"})["X-Request-ID"] != "x\ny"


def test_other_sites_cannot_call_it_from_a_browser(get, client):
    for answer in (get(Origin="https://evil.example"), client.options(LOOK_UP)):
        assert not [name for name in answer.headers if name.startswith("Access-Control-")]


@pytest.mark.parametrize(
    ("address", "forwarded", "expected"),
    [
        pytest.param(INSIDE, "", 200, id="from the network"),
        pytest.param(OUTSIDE, "", 401, id="from elsewhere"),
        pytest.param(OUTSIDE, INSIDE, 401, id="a forged header"),
        pytest.param(PROXY, INSIDE, 200, id="from the network, by the proxy"),
        pytest.param(PROXY, f"{INSIDE}, {OUTSIDE}", 401, id="a forged header, by the proxy"),
        pytest.param(PROXY, "", 401, id="from the proxy itself"),
    ],
)
def test_addresses_of_a_network_read_without_a_token(
    client, settings, monkeypatch, secret_of, address, forwarded, expected
):
    monkeypatch.setenv("NETWORKS", "10.20.0.0/16")
    monkeypatch.setenv("PROXIES", PROXY)
    settings.API_NETWORKS = networks("NETWORKS", "")
    settings.TRUSTED_PROXIES = networks("PROXIES", "")
    settings.API_NETWORKS_USER = "panda"
    secret_of("panda")

    def send(**headers):
        headers |= {"X-Forwarded-For": forwarded} if forwarded else {}
        return client.get(LOOK_UP, headers=headers, REMOTE_ADDR=address)

    assert send().status_code == expected
    assert send(Authorization="Token ioportal_guessed").status_code == 401
    settings.API_NETWORKS_USER = "nobody"
    assert send().status_code == 401


def test_addresses_of_a_network_neither_write_nor_read_metrics(client, settings, monkeypatch, sam):
    monkeypatch.setenv("NETWORKS", INSIDE)
    settings.API_NETWORKS = networks("NETWORKS", "")
    settings.API_NETWORKS_USER = "sam"

    for method, path in {"PUT": "mitigations/x/", "POST": "bounces", "GET": "metrics"}.items():
        answer = client.generic(method, f"/api/v1/{path}", REMOTE_ADDR=INSIDE)
        assert answer.status_code == 401


def test_the_documentation_names_every_field_of_the_look_up():
    text = (REPOSITORY / "docs/api.md").read_text()

    assert [name for name in FIELDS if f"`{name}`" not in text] == []


def test_the_page_of_the_api_shows_every_operation(client):
    page = client.get("/api/v1/docs/").content.decode()

    for path, methods in client.get("/api/v1/openapi.json").json()["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in page
    assert all(f"<code>{name}</code>" in page for name in FIELDS)


def test_a_server_error_has_the_request_id(client, secret_of):
    headers = {"Authorization": f"Token {secret_of('sam', is_staff=True)}", "X-Request-ID": "p-7"}
    client.raise_request_exception = False
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs_workloadjob RENAME TO gone")

    answer = client.get("/api/v1/jobs/query/?pandaid=1", headers=headers)

    assert (answer.status_code, answer["X-Request-ID"]) == (500, "p-7")
    assert answer["Content-Type"] == "application/problem+json"
    assert (answer.json()["code"], answer.json()["request_id"]) == ("fault", "p-7")


def test_a_request_that_is_refused_early_has_the_request_id():
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "path": "/api/v1/ingest/batches",
        "method": "POST",
        "headers": [(b"x-request-id", b"p-7"), (b"content-length", b"99999999")],
    }
    asyncio.run(application(scope, receive=None, send=send))

    start, body = sent
    assert (start["status"], dict(start["headers"])[b"x-request-id"]) == (413, b"p-7")
    assert json.loads(body["body"])["request_id"] == "p-7"
