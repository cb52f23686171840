"""A user's own account in the browser."""

import re

import pytest

from ioportal.account.views import MAX_TOKENS
from ioportal.alerts.models import Subscription
from ioportal.api.models import Token
from ioportal.site.models import UserAccount
from tests.web.reading import text_of, words_of

MAILS = {"action": "mails", "min_node_hours": "2.5", "daily_cap": "3"}


def test_a_user_asks_for_mails(as_alice):
    UserAccount.objects.create(name="alice", email="alice@example.org")
    assert "sent to alice@example.org" in words_of(as_alice.get("/me/"))

    answer = as_alice.post("/me/", {**MAILS, "job_reports": "on"}, follow=True)

    assert "Saved." in words_of(answer)
    wanted = Subscription.objects.get(user__username="alice")
    assert (wanted.job_reports, wanted.min_node_hours, wanted.daily_cap) == (True, 2.5, 3)
    as_alice.post("/me/", MAILS)
    assert not Subscription.objects.get().job_reports


def test_the_page_says_that_an_address_is_missing(as_alice):
    assert "No mail address is registered for alice." in words_of(as_alice.get("/me/"))


@pytest.mark.parametrize(
    "changes", [{"daily_cap": "1000"}, {"min_node_hours": "-1"}, {"daily_cap": ""}]
)
def test_invalid_wishes_are_refused(as_alice, changes):
    answer = as_alice.post("/me/", {**MAILS, **changes})

    assert 'class="error"' in text_of(answer)
    assert not Subscription.objects.exists()


def test_a_token_is_shown_once_and_reads_reports(as_alice):
    answer = as_alice.post("/me/", {"action": "create", "name": "laptop"})
    secret = re.search(r"ioportal_[\w-]+", text_of(answer))[0]
    assert "no-store" in answer["Cache-Control"]
    expires_at = Token.objects.get().expires_at
    assert f"created now expires on {expires_at:%Y-%m-%d}." in words_of(answer)
    assert secret not in text_of(as_alice.get("/me/"))

    headers = {"Authorization": f"Token {secret}"}
    answer = as_alice.get("/api/v1/jobs/anvil/1/report", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (404, "job")


def test_users_revoke_their_own_tokens_only(as_alice, client, bob):
    as_alice.post("/me/", {"action": "create", "name": "laptop"})
    number = Token.objects.get().pk

    client.force_login(bob)
    client.post("/me/", {"action": "revoke", "token": number})
    assert Token.objects.get().revoked_at is None

    client.force_login(Token.objects.get().user)
    client.post("/me/", {"action": "revoke", "token": number})
    assert Token.objects.get().revoked_at
    assert "laptop" not in words_of(client.get("/me/"))


def test_the_number_of_tokens_is_limited(as_alice):
    for number in range(MAX_TOKENS + 1):
        answer = as_alice.post("/me/", {"action": "create", "name": f"host {number}"})

    assert "Revoke a token first." in words_of(answer)
    assert Token.objects.count() == MAX_TOKENS
    for number in ("x", "²", "9" * 5_000):
        assert as_alice.post("/me/", {"action": "revoke", "token": number}).status_code == 302
