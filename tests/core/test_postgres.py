"""The database backend: checks of a connection when a request begins."""

from datetime import timedelta
from time import sleep

import pytest
from django.db import OperationalError, connection

from ioportal.core.postgres import base, validation
from ioportal.core.postgres.advisory_locks import Lock, end_suspended
from tests import second_connection

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


def test_waits_for_locks_are_limited(begin_request):
    wrapper = begin_request().db
    wrapper.close()
    wrapper.lock_timeout_s = 0.2

    with wrapper.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("200ms",)
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("10s",)


@pytest.fixture
def suspended(queries):
    """Start a query that holds a lock and whose result nobody reads."""
    process = second_connection.connect(autocommit=True)
    process.execute("SELECT pg_advisory_lock(%s)", [Lock.STAGE])
    process.pgconn.send_query(b"SELECT repeat('x', 10000) FROM generate_series(1, 10000)")
    pid = process.info.backend_pid
    state = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = %s"
    for _ in range(100):
        queries("SELECT pg_stat_clear_snapshot()")  # a transaction keeps the first state
        if queries(state, pid) == [("active", "ClientWrite")]:
            break
        sleep(0.1)
    yield pid
    process.close()


def test_a_suspended_process_that_reads_no_result_loses_its_locks(suspended, queries):
    assert end_suspended() == 0  # it may still read
    assert end_suspended(after=timedelta(0)) == 1

    for _ in range(100):
        if not queries("SELECT FROM pg_locks WHERE pid = %s", suspended):
            break
        sleep(0.1)
    assert not queries("SELECT FROM pg_locks WHERE pid = %s", suspended)


def test_a_cursor_of_an_export_that_cannot_be_closed_is_an_error_of_the_database(
    begin_request, queries
):
    wrapper = begin_request().db
    wrapper.set_autocommit(False)
    rows = wrapper.chunked_cursor()
    rows.execute("SELECT generate_series(1, 1000)")
    rows.fetchmany(10)
    queries("SELECT pg_terminate_backend(%s, 5000)", wrapper.connection.info.backend_pid)

    with pytest.raises(OperationalError):
        rows.close()


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
