"""``/healthz`` and ``/readyz``: liveness and readiness of the process.

Probes use neither HTTPS nor a log-in, so this middleware runs before both are required.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpResponse, JsonResponse
from kombu.exceptions import OperationalError

from ioportal.celery import app

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

_REUSED_S = 1.0


class Probes:
    """Middleware for probes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._is_migrated = False  # never reset
        self._check_lock = Lock()
        self._state: dict[str, str] = {}
        self._checked_at = -_REUSED_S

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Respond to probes; pass on other requests."""
        if request.path == "/healthz":
            return HttpResponse("ok\n", content_type="text/plain")
        if request.path == "/readyz":
            return self._ready()
        return self._get_response(request)

    def _ready(self) -> JsonResponse:
        """Report database and broker; pages work without the broker."""
        state = self._current_state()
        return JsonResponse(state, status=200 if state["database"] == "ok" else 503)

    def _current_state(self) -> dict[str, str]:
        """Return the result of the latest check; one thread checks, others wait."""
        with self._check_lock:
            if monotonic() - self._checked_at >= _REUSED_S:
                self._state = {"database": self._database(), "broker": _broker()}
                self._checked_at = monotonic()
            return self._state

    def _database(self) -> str:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            if not self._is_migrated:
                executor = MigrationExecutor(connection)
                self._is_migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        except Error:
            return "unavailable"
        return "ok" if self._is_migrated else "not migrated"


def _broker() -> str:
    """Check with a new connection, as pooled ones may be dead."""
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=settings.BROKER_TIMEOUT_S)
    except OperationalError:
        return "unavailable"
    return "ok"
