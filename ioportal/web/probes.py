"""``/healthz`` and ``/readyz``: whether the process lives, and whether it can serve.

Whoever watches a process asks it by its address, without HTTPS and without a log-in: so they are
answered before anything asks for these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpResponse, JsonResponse
from kombu.exceptions import OperationalError

from ioportal.celery import app

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

_BROKER_TIMEOUT_S = 2


class Probes:
    """Middleware that answers the probes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._is_migrated = False  # what is migrated stays so

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a probe; pass on what is none."""
        if request.path == "/healthz":
            return HttpResponse("ok\n", content_type="text/plain")
        if request.path == "/readyz":
            return self._ready()
        return self._get_response(request)

    def _ready(self) -> JsonResponse:
        """Tell what there is of all that pages need; they do without the broker."""
        database = self._database()
        told = {"database": database, "broker": _broker()}
        return JsonResponse(told, status=200 if database == "ok" else 503)

    def _database(self) -> str:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            if not self._is_migrated:
                executor = MigrationExecutor(connection)
                self._is_migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        except Error:
            return "away"
        return "ok" if self._is_migrated else "not migrated"


def _broker() -> str:
    """Ask on a connection of its own, so that one that died is not asked."""
    try:
        with app.connection_for_write(connect_timeout=_BROKER_TIMEOUT_S) as broker:
            broker.ensure_connection(max_retries=1, timeout=_BROKER_TIMEOUT_S)
    except OperationalError:
        return "away"
    return "ok"
