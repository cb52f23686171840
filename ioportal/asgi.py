"""Entry point of the web server: lanes of requests and their statement limits."""

from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.db import connection

from ioportal.core.serving import Lane, Server
from ioportal.wsgi import application as django


def _limit_statements() -> None:
    """Limit the statements of this thread's connection."""
    connection.statement_timeout_s = settings.STATEMENT_TIMEOUT.total_seconds()  # type: ignore[attr-defined]  # ioportal.core.postgres


def _limit_waits() -> None:
    """Limit how long this thread's statements wait for locks.

    Whatever keeps a lock for longer, such as a suspended process, must not keep all threads.
    """
    connection.lock_timeout_s = _LOCK_WITHIN_S  # type: ignore[attr-defined]  # ioportal.core.postgres


def is_export(scope: dict[str, Any]) -> bool:
    """Return whether a request of any bytes asks for a file or a table."""
    if scope["path"] in _TABLES:
        return True
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return bool({"csv", "json"} & set(query.get("format", ())))


_TABLES = frozenset({"/api/v1/jobs/", "/api/v1/panda/jobs/"})
_DELIVERIES = ("/api/v1/ingest/", "/api/v1/bounces")
_LOCK_WITHIN_S = 5.0

# Each thread may hold a connection to the database.
application = Server(
    django,
    (
        Lane("liveness", 1, lambda scope: scope["path"] == "/healthz"),
        Lane("readiness", 1, lambda scope: scope["path"] == "/readyz"),
        Lane("deliveries", 5, lambda scope: scope["path"].startswith(_DELIVERIES), _limit_waits),
        Lane("exports", 2, is_export, _limit_statements),
        Lane("api", 4, lambda scope: scope["path"].startswith("/api/"), _limit_statements),
        Lane("static", 2, lambda scope: scope["path"].startswith(settings.STATIC_URL)),
        Lane("pages", 8, lambda _: True, _limit_statements),
    ),
)
