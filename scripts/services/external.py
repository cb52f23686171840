"""External servers: their addresses are in the environment, and no server is started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scripts.checkout import Problem, say
from scripts.services.provider import Provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DATABASE = "DATABASE_URL"
BROKER = "IOPORTAL_BROKER_URL"
PATIENCE_S = 5


def provider(our_addresses: Iterable[str]) -> Provider | None:
    """Return the provider of servers in the environment; None without any.

    `our_addresses` belong to servers that this checkout starts itself: a shell with the output of
    ``make env`` still needs them to be started.
    """
    given = {name: os.environ.get(name, "") for name in (DATABASE, BROKER)}
    if set(given.values()) <= {"", *our_addresses}:
        return None
    if not all(given.values()):
        raise Problem(f"Set {DATABASE} and {BROKER} both, or neither")
    return Provider("addresses given in the environment", lambda: given, lambda: check(given))


def check(given: Mapping[str, str]) -> None:
    """Raise a problem unless both servers answer and PostgreSQL has TimescaleDB."""
    say("Checking the servers whose addresses are given in the environment")
    check_database(given[DATABASE])
    check_broker(given[BROKER])


def check_database(url: str) -> None:
    import psycopg  # noqa: PLC0415 - only this provider needs the virtual environment

    query = "SELECT FROM pg_available_extensions WHERE name = 'timescaledb'"
    try:
        with psycopg.connect(url, connect_timeout=PATIENCE_S) as connection:
            has_timescaledb = connection.execute(query).rowcount == 1
    except psycopg.Error as error:
        raise Problem(f"{DATABASE} cannot be used: {error}") from error
    if not has_timescaledb:
        raise Problem(f"{DATABASE} cannot be used: that PostgreSQL has no TimescaleDB")


def check_broker(url: str) -> None:
    import kombu.exceptions  # noqa: PLC0415 - only this provider needs the virtual environment

    try:
        with kombu.Connection(url, connect_timeout=PATIENCE_S) as connection:
            connection.ensure_connection(max_retries=1, timeout=PATIENCE_S)
    except (kombu.exceptions.KombuError, OSError, KeyError, ValueError) as error:
        raise Problem(f"{BROKER} cannot be used: {error}") from error
