"""Django's PostgreSQL backend with a time limit for every response.

libpq waits without limit: the kernel of a frozen server still acknowledges packets, and
`statement_timeout` needs a running server. Django loads this module by its name (`ENGINE`).
"""

from __future__ import annotations

from functools import partial
from select import POLLIN, poll
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

from ioportal.core.postgres.validation import Validation

if TYPE_CHECKING:
    from psycopg.abc import PQGen

_FRESH_S = 1.0  # since the latest response, if later waits are limited
_POLL_S = 0.1  # the default of psycopg, between checks for an interrupt
_HEALTH_CHECK_S = 1.0  # of `SELECT 1` when a request begins
_CANCELLATION_S = 5.0  # from `statement_timeout` to the message of the server


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of a thread.

    `statement_timeout_s` limits its statements, `lock_timeout_s` their waits for locks (None: no
    limit).
    """

    validation_class = Validation
    health_check_done: bool
    statement_timeout_s: float | None = None
    lock_timeout_s: float | None = None
    _response_s: float | None = None
    _responded_at = float("-inf")

    def get_connection_params(self) -> dict[str, Any]:
        """Return parameters with the time limits."""
        parameters: dict[str, Any] = super().get_connection_params()
        parameters["prepare_threshold"] = 0  # `prepared_cursor` prepares at first use
        limits = {
            "statement_timeout": self.statement_timeout_s,
            "lock_timeout": self.lock_timeout_s,
        }
        options = [f"-c {name}={round(s * 1000)}" for name, s in limits.items() if s]
        parameters["options"] = " ".join([parameters.get("options", ""), *options])
        return parameters

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """Connect, with a limit for later waits."""
        if self.statement_timeout_s:
            self._response_s = self.statement_timeout_s + _CANCELLATION_S
        connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        connection.wait = partial(self._wait, connection)  # type: ignore[method-assign]
        return connection

    def prepared_cursor(self) -> Any:
        """Return a cursor whose statements the server parses once, and plans for any values."""
        self.close_if_health_check_failed()
        self.ensure_connection()
        with self.wrap_database_errors:
            cursor = base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]  # of psycopg
            return self._prepare_cursor(cursor)  # type: ignore[attr-defined]  # as `cursor` does

    def create_cursor(self, name: str | None = None) -> Any:
        """Return a cursor; errors when it closes are Django's, as those of its statements."""
        cursor = super().create_cursor(name)
        cursor.close = self.wrap_database_errors(cursor.close)
        return cursor

    def close_if_health_check_failed(self) -> None:
        """Check a connection when a request begins, unless it is fresh."""
        if not self.health_check_done and self._is_fresh():
            self.health_check_done = True
        super().close_if_health_check_failed()

    def _is_fresh(self) -> bool:
        """Whether the server has just responded, and has not ended the connection since."""
        is_open = self.connection is not None and not self.connection.closed
        is_recent = self._response_s and monotonic() - self._responded_at < _FRESH_S
        if not (is_open and is_recent):
            return False
        socket = poll()
        socket.register(self.connection.pgconn.socket, POLLIN)
        return not socket.poll(0)

    def is_usable(self) -> bool:
        """Check an idle connection within a second."""
        response_s, self._response_s = self._response_s, _HEALTH_CHECK_S
        try:
            return super().is_usable()
        finally:
            self._response_s = response_s

    def _wait(
        self,
        connection: psycopg.Connection[Any],
        generator: PQGen[Any],
        interval: float = _POLL_S,
        timeout: float | None = None,
    ) -> Any:
        try:
            response = psycopg.Connection.wait(
                connection, generator, interval, timeout or self._response_s
            )
        except psycopg.OperationalError:
            # The state is unknown: a later statement must not read a late response.
            if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
                connection.close()
            raise
        self._responded_at = monotonic()
        return response
