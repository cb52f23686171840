"""Tokens: only valid tokens give access; invalid tokens are logged and rate-limited by address."""

import io

import pytest
from django.utils import timezone
from structlog.testing import capture_logs

from tests.batches import traced

pytestmark = pytest.mark.django_db


def test_invalid_tokens_are_logged_and_rate_limited(client, call, monkeypatch):
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    secret = call("token", "create", "metrics")

    def scrape(token, address="192.0.2.1"):
        headers = {"Authorization": f"Token {token}"}
        return client.get("/api/v1/metrics", headers=headers, REMOTE_ADDR=address)

    with capture_logs() as events:
        answers = [scrape(f"guess {n}") for n in range(62)]

    assert [answer.status_code for answer in answers] == [401] * 60 + [429] * 2
    refused = {
        "event": "token_refused",
        "log_level": "warning",
        "address": "192.0.2.1",
        "path": "/api/v1/metrics",
    }
    throttled = {**refused, "event": "token_throttled", "retry_after_s": 5}
    assert events == [refused] * 60 + [throttled] * 2
    assert answers[-1]["Retry-After"] == "5"
    assert answers[-1]["Content-Type"] == "application/problem+json"
    assert answers[-1].json() == {
        "title": "Too Many Requests",
        "status": 429,
        "code": "attempts",
        "detail": "Too many requests without a valid token from this address.",
        "request_id": answers[-1]["X-Request-ID"],
    }
    assert scrape(secret).status_code == 200
    assert scrape("guess", address="192.0.2.2").status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({}, id="no token"),
        pytest.param({"Authorization": "Token ioportal_guessed"}, id="an unknown token"),
        pytest.param({"Authorization": "Bearer x"}, id="another kind"),
        pytest.param({"Authorization": "Token \x00"}, id="noise"),
    ],
)
def test_requests_without_a_valid_token_are_refused(client, header):
    answer = client.post("/api/v1/ingest/batches", headers=header)

    assert (answer.status_code, answer.json()["code"]) == (401, "token")
    assert answer["WWW-Authenticate"] == "Token"


def test_a_revoked_token_is_refused(deliver, token, call):
    assert deliver(traced(1, "12:00", "12:00:10"))[0] == 202

    number = call("token", "list").split()[0]
    call("token", "revoke", number)

    assert deliver(traced(1, "12:00", "12:00:10"))[0] == 401
    assert "revoked" in call("token", "list")


def test_token_secrets_are_not_stored(token, queries):
    secret = token("mds1-trace")

    assert secret not in str(queries("SELECT * FROM api_token"))
    assert io.StringIO(secret).read().startswith("ioportal_")
