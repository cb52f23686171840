"""Django's PostgreSQL backend with a time limit for every response.

libpq waits without limit: the kernel of a frozen server still acknowledges packets, and
`statement_timeout` needs a running server. Django loads this module by its name (`ENGINE`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

if TYPE_CHECKING:
    from psycopg.abc import PQGen

_POLL_S = 0.1  # the default of psycopg, between checks for an interrupt
_HEALTH_CHECK_S = 1.0  # of `SELECT 1` when a request begins
_CANCELLATION_S = 5.0  # from `statement_timeout` to the message of the server


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of a thread; `statement_timeout_s` limits its statements (None: no limit)."""

    statement_timeout_s: float | None = None
    _response_s: float | None = None

    def get_connection_params(self) -> dict[str, Any]:
        """Return parameters with a `statement_timeout`."""
        parameters: dict[str, Any] = super().get_connection_params()
        if self.statement_timeout_s:
            milliseconds = round(self.statement_timeout_s * 1000)
            options = parameters.get("options", "")
            parameters["options"] = f"{options} -c statement_timeout={milliseconds}"
        return parameters

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """Connect, with a limit for later waits."""
        if self.statement_timeout_s:
            self._response_s = self.statement_timeout_s + _CANCELLATION_S
        connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        connection.wait = partial(self._wait, connection)  # type: ignore[method-assign]
        return connection

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
            return psycopg.Connection.wait(
                connection, generator, interval, timeout or self._response_s
            )
        except psycopg.OperationalError:
            # The state is unknown: a later statement must not read a late response.
            if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
                connection.close()
            raise
