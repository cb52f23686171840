"""Log-in attempts are limited by user and address, and logged."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from ipaddress import ip_network
from itertools import count

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client
from django.utils import timezone
from structlog.testing import capture_logs

from ioportal.core import env
from ioportal.core.throttling.models import Record
from tests.web.reading import words_of

HOSTILE = "al\u202eice\x1b[2J\n{}%s<b>"
PATHS = ["/login/", "/admin/login/"]


@pytest.fixture(autouse=True)
def _quick_hashes(settings, alice, sam):
    """Hash passwords quickly."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    for user in (alice, sam):
        user.set_password(f"password of {user}")
        user.save()


@pytest.fixture(autouse=True)
def wait(monkeypatch):
    """Stop the clock; return a function that advances it."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)

    def move(seconds):
        nonlocal now
        now += timedelta(seconds=seconds)

    return move


@pytest.fixture
def try_password(client):
    """Try a password and return the status: 200 for the form, 302 for a log-in."""

    def attempt(password, user="sam", address="192.0.2.1", path="/login/", **headers):
        client.logout()
        data = {"username": user, "password": password}
        answer = client.post(path, data, REMOTE_ADDR=address, headers=headers)
        attempt.answer = answer
        return answer.status_code

    return attempt


@pytest.mark.parametrize("path", PATHS)
def test_ten_attempts_are_free_and_then_one_a_minute(try_password, sam, path, wait):
    statuses = [try_password(f"wrong {n}", path=path) for n in range(40)]

    assert statuses == [200] * 10 + [429] * 30
    assert try_password("password of sam", path=path) == 429
    refusal = try_password.answer
    assert refusal["Retry-After"] == "60"
    assert refusal["Cache-Control"] == "private, no-store"
    assert "The password was not checked. Try again in 60 seconds." in words_of(refusal)
    wait(60)
    assert try_password("wrong", path=path) == 200
    assert try_password("wrong", path=path) == 429
    wait(60)
    assert try_password("password of sam", path=path) == 302


def test_a_successful_log_in_resets_the_attempts(try_password, sam):
    for _ in range(2):
        assert [try_password("wrong") for _ in range(9)] == [200] * 9
        assert try_password("password of sam") == 302


def test_responses_do_not_reveal_users(try_password, sam):
    for user in ("sam", "nobody"):
        statuses = [try_password("wrong", user=user, address="192.0.2.9") for _ in range(12)]

        assert statuses == [200] * 10 + [429] * 2, user


def test_equivalent_user_names_share_a_limit(try_password, sam):
    statuses = [try_password("wrong", user=name) for name in ["sam", "\uff53am"] * 6]

    assert statuses == [200] * 10 + [429] * 2


def test_guesses_from_one_address_do_not_lock_a_user_out_at_another(try_password, sam):
    assert [try_password("wrong", address="198.51.100.6") for _ in range(11)][-1] == 429

    assert try_password("password of sam", address="192.0.2.1") == 302


def test_distributed_guesses_are_limited_except_at_the_usual_address(try_password, sam):
    assert try_password("password of sam", address="192.0.2.1") == 302
    addresses = (f"198.51.100.{n}" for n in count(1))

    statuses = [try_password("wrong", address=next(addresses)) for _ in range(60)]

    assert statuses == [200] * 50 + [429] * 10
    assert try_password.answer["Retry-After"] == "10"
    assert try_password("password of sam", address=next(addresses)) == 429
    assert try_password("password of sam", address="192.0.2.1") == 302


def test_the_number_of_names_per_address_is_limited(try_password, db):
    statuses = [try_password("wrong", user=f"user{n}") for n in range(110)]

    assert statuses == [200] * 100 + [429] * 10
    assert try_password.answer["Retry-After"] == "5"


def test_an_ipv6_network_counts_as_one_host(try_password, sam):
    statuses = [try_password("wrong", address=f"2001:db8::{n:x}") for n in range(11)]

    assert statuses == [200] * 10 + [429]
    assert try_password("wrong", address="2001:db8:0:1::1") == 200


def test_clients_cannot_forge_addresses(try_password, sam):
    statuses = [try_password("wrong", x_forwarded_for=f"203.0.113.{n}") for n in range(11)]

    assert statuses == [200] * 10 + [429]


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        pytest.param("10.0.0.1", "203.0.113.7", "203.0.113.7", id="trusted proxy"),
        pytest.param("10.0.0.1", "1.2.3.4, 203.0.113.7", "203.0.113.7", id="forged header"),
        pytest.param("10.0.0.1", "203.0.113.7, 10.0.0.2", "203.0.113.7", id="two proxies"),
        pytest.param("::ffff:10.0.0.1", "2001:db8::1", "2001:db8::1", id="mapped address"),
        pytest.param("10.0.0.1", "\x1b[2J", "10.0.0.1", id="no address"),
        pytest.param("10.0.0.1", "", "10.0.0.1", id="no header"),
        pytest.param("192.0.2.1", "203.0.113.7", "192.0.2.1", id="not a proxy"),
        pytest.param("", "203.0.113.7", "", id="a unix socket"),
    ],
)
def test_a_trusted_proxy_forwards_the_address(try_password, settings, db, peer, forwarded, address):
    settings.TRUSTED_PROXIES = [ip_network("10.0.0.0/8")]
    with capture_logs() as events:
        try_password("wrong", address=peer, x_forwarded_for=forwarded)

    assert [event["address"] for event in events] == [address]


def test_trusted_proxies_are_addresses_and_networks(monkeypatch):
    monkeypatch.setenv("PROXIES", "10.0.0.1, fd00::/8")
    assert env.networks("PROXIES", "") == [ip_network("10.0.0.1/32"), ip_network("fd00::/8")]

    monkeypatch.setenv("PROXIES", "proxy.example.org")
    with pytest.raises(ImproperlyConfigured, match="PROXIES: 'proxy"):
        env.networks("PROXIES", "")


@pytest.mark.parametrize("path", PATHS)
def test_log_ins_are_logged_with_user_and_address(try_password, sam, path):
    with capture_logs() as events:
        for password in ["wrong"] * 10 + ["password of sam"]:
            try_password(password, path=path)
        try_password("password of sam", address="192.0.2.2", path=path)
        try_password("wrong", user=HOSTILE, path=path)

    who = {"user": "sam", "address": "192.0.2.1"}
    failed = {"event": "log_in_failed", "log_level": "warning", **who}
    throttled = {"event": "log_in_throttled", "retry_after_s": 60, "log_level": "warning", **who}
    assert events[:11] == [failed] * 10 + [throttled]
    accepted = {**who, "address": "192.0.2.2", "event": "log_in_accepted", "log_level": "info"}
    assert events[11] == accepted
    assert events[12] == {**failed, "user": ""}  # may be a password


def test_user_names_are_not_stored(try_password, db):
    try_password("wrong", user="my password by mistake")

    assert [len(key) for key in Record.objects.values_list("key", flat=True)] == [64, 64, 64]


def test_expired_records_are_removed(try_password, db, wait):
    for n in range(20):
        try_password("wrong", user=f"user{n}", address=f"192.0.2.{n}")
    assert Record.objects.count() == 60
    wait(61)

    try_password("wrong")

    assert Record.objects.count() == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("sam")
def test_concurrent_attempts_are_counted():
    def attempt(number):
        data = {"username": "sam", "password": f"wrong {number}"}
        try:
            return Client().post("/login/", data, REMOTE_ADDR="192.0.2.1").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as threads:
        statuses = sorted(threads.map(attempt, range(40)))

    assert statuses == [200] * 10 + [429] * 30
