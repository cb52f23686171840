"""Django's PostgreSQL backend with a time limit on every answer.

libpq waits for an answer for ever: the kernel of a frozen server still acknowledges packets, and
`statement_timeout` needs a server that runs. Django loads this module by its name (`ENGINE`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

if TYPE_CHECKING:
    from psycopg.abc import PQGen

_POLL_S = 0.1  # psycopg's own, between checks for an interrupt
_HEALTH_CHECK_S = 1.0  # of `SELECT 1` when a request begins
_CANCELLATION_S = 5.0  # from the end of `statement_timeout` to the server's message


class DatabaseWrapper(base.DatabaseWrapper):
    """A thread's connection; its statements may run for `statement_timeout_s`, or for any time."""

    statement_timeout_s: float | None = None
    _answer_s: float | None = None

    def get_connection_params(self) -> dict[str, Any]:
        """Have the server cancel long statements."""
        parameters: dict[str, Any] = super().get_connection_params()
        if self.statement_timeout_s:
            milliseconds = round(self.statement_timeout_s * 1000)
            options = parameters.get("options", "")
            parameters["options"] = f"{options} -c statement_timeout={milliseconds}"
        return parameters

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """Connect; every later wait for the server is bounded."""
        if self.statement_timeout_s:
            self._answer_s = self.statement_timeout_s + _CANCELLATION_S
        connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        connection.wait = partial(self._wait, connection)  # type: ignore[method-assign]
        return connection

    def is_usable(self) -> bool:
        """Check a connection that was idle, for a second at most."""
        answer_s, self._answer_s = self._answer_s, _HEALTH_CHECK_S
        try:
            return super().is_usable()
        finally:
            self._answer_s = answer_s

    def _wait(
        self,
        connection: psycopg.Connection[Any],
        generator: PQGen[Any],
        interval: float = _POLL_S,
        timeout: float | None = None,
    ) -> Any:
        try:
            return psycopg.Connection.wait(
                connection, generator, interval, timeout or self._answer_s
            )
        except psycopg.OperationalError:
            # Without an answer its state is unknown: a later answer must not be taken for another.
            if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
                connection.close()
            raise
