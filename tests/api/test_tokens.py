"""Invalid tokens are logged and limited by address; valid ones are not affected."""

import pytest
from django.utils import timezone
from structlog.testing import capture_logs

pytestmark = pytest.mark.django_db


def test_invalid_tokens_are_logged_and_limited_and_valid_ones_go_on(client, call, monkeypatch):
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
    assert answers[-1].json() == {
        "code": "attempts",
        "message": "Too many requests without a valid token from this address.",
    }
    assert scrape(secret).status_code == 200
    assert scrape("guess", address="192.0.2.2").status_code == 401
