"""The database backend: checks of a connection when a request begins."""

from time import sleep

import pytest
from django.db import connection

from ioportal.core.postgres import base, validation

IDLE_S = 1.1


@pytest.fixture
def begin_request(db):
    """Begin a request of a thread with limited statements; return its first cursor."""
    wrapper = base.DatabaseWrapper(connection.settings_dict)
    wrapper.statement_timeout_s = 10

    def begin():
        wrapper.close_if_unusable_or_obsolete()
        return wrapper.cursor()

    yield begin
    wrapper.close()


def process_of(cursor):
    cursor.execute("SELECT pg_backend_pid()")
    return cursor.fetchone()[0]


@pytest.mark.parametrize("pause_s", [0, IDLE_S])
def test_a_request_replaces_a_connection_that_the_server_ended(begin_request, queries, pause_s):
    process = process_of(begin_request())
    assert process_of(begin_request()) == process

    queries("SELECT pg_terminate_backend(%s, 5000)", process)
    sleep(pause_s)

    assert process_of(begin_request()) != process


def test_a_suspended_process_does_not_keep_its_locks(begin_request):
    cursor = begin_request()

    limits = []
    for name in ("idle_in_transaction_session_timeout", "idle_session_timeout"):
        cursor.execute(f"SHOW {name}")
        limits += cursor.fetchone()

    assert limits == ["5min", "10min"]


def test_a_request_replaces_a_connection_that_was_closed(begin_request):
    cursor = begin_request()
    process = process_of(cursor)
    cursor.connection.close()

    assert process_of(begin_request()) != process


@pytest.mark.parametrize(("pause_s", "statement"), [(0, "pg_backend_pid"), (IDLE_S, "SELECT 1")])
def test_only_idle_connections_are_checked(begin_request, queries, pause_s, statement):
    process = process_of(begin_request())
    sleep(pause_s)

    begin_request()

    [(latest,)] = queries("SELECT query FROM pg_stat_activity WHERE pid = %s", process)
    assert statement in latest


@pytest.mark.django_db
def test_a_superuser_as_the_portals_role_is_reported(queries):
    [(is_superuser,)] = queries("SHOW is_superuser")

    assert [message.id for message in validation.superusers(connection)] == (
        ["ioportal.W001"] if is_superuser == "on" else []
    )
