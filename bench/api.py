"""The API with 1 million jobs and 2 million PanDA jobs: look-ups, their rate, and exports.

The web server has the workers of `make serve`; it, the database and the clients share the
processors.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from statistics import quantiles
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.db import connection

from bench import centre, portal
from bench.figures import Figure, say
from ioportal.api.models import Token
from ioportal.jobs.models import Job, WorkloadJob
from scripts import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.portal import Web

_JOBS = 1_000_000
_STATEMENTS = Path(__file__).with_name("api.sql")
_TABLES = ["jobs_workloadjob", "jobs_workloadjob_jobs"]
_ROUNDS, _ROUNDS_OF_MANY, _MANY = 500, 50, 1_000
_CONNECTIONS, _SECONDS = 16, 10
_READ_BYTES = 1 << 16
_MB = 1_000_000
_TYPES = {
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


class _Client:
    """A connection with a token."""

    def __init__(self, address: str, token: str) -> None:
        place = urlsplit(address)
        self._connection = HTTPConnection(place.hostname or "", place.port, timeout=300)
        self._headers = {"Authorization": f"Token {token}", "Accept": "application/json"}

    def look_up(self, ids: list[int]) -> float:
        """Look up PanDA jobs; return the seconds.

        Raises:
            ValueError: a job is missing.
        """
        began = monotonic()
        path = f"/api/v1/jobs/query/?json&pandaid={','.join(map(str, ids))}"
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        content = response.read()
        seconds = monotonic() - began
        if response.status != HTTPStatus.OK or not all(json.loads(content).values()):
            raise ValueError(f"{response.status} {content[:200]!r}")
        return seconds

    def export(self, kind: str) -> tuple[float, int]:
        """Export all jobs; return seconds and bytes."""
        began, received = monotonic(), 0
        headers = {**self._headers, "Accept": kind}
        self._connection.request("GET", "/api/v1/jobs/", headers=headers)
        response = self._connection.getresponse()
        while content := response.read(_READ_BYTES):
            received += len(content)
        if response.status != HTTPStatus.OK:
            raise ValueError(f"{kind} answers {response.status}.")
        return monotonic() - began, received


def measure(scale: float) -> Iterator[Figure]:
    """Look up and export jobs through a web server."""
    with centre.filled(round(_JOBS * scale)):
        _add_panda_jobs()
        ids = list(WorkloadJob.objects.order_by("?").values_list("panda_id", flat=True)[:200_000])
        _, token = Token.objects.all().issue(
            Token.Scope.READ, user=User.objects.get(username=centre.STAFF)
        )
        with portal.served(serve.WORKERS, IOPORTAL_API_REQUESTS_PER_MINUTE="100000000") as web:
            yield from _look_ups(web.address, token, ids)
            yield from _exports(web, token, Job.objects.count())


def _add_panda_jobs() -> None:
    with centre.without_indexes(_TABLES), connection.cursor() as cursor:
        cursor.execute(_STATEMENTS.read_text())
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    say(f"{WorkloadJob.objects.count():,} PanDA jobs")


def _look_ups(address: str, token: str, ids: list[int]) -> Iterator[Figure]:
    client, random = _Client(address, token), Random(1)  # noqa: S311  (a sample)
    client.look_up(ids[:1])
    ones = [client.look_up([random.choice(ids)]) for _ in range(_ROUNDS)]
    many = [client.look_up(random.sample(ids, _MANY)) for _ in range(_ROUNDS_OF_MANY)]
    yield _p95("api_one", "API: look-up of 1 id, p95", ones, 15)
    yield _p95("api_many", "API: look-up of 1,000 ids, p95", many, 100)

    def load(number: int) -> int:
        client, random, done = _Client(address, token), Random(number), 0  # noqa: S311
        until = monotonic() + _SECONDS
        while monotonic() < until:
            client.look_up([random.choice(ids)])
            done += 1
        return done

    with ThreadPoolExecutor(_CONNECTIONS) as clients:
        done = sum(clients.map(load, range(_CONNECTIONS)))
    yield Figure(
        "api_rate",
        f"API: look-ups of 1 id from {_CONNECTIONS} connections, without an error",
        done / _SECONDS,
        "/s",
        at_least=300,
    )


def _exports(web: Web, token: str, jobs: int) -> Iterator[Figure]:
    client = _Client(web.address, token)
    for name, kind in _TYPES.items():
        web.memory_bytes()
        idle = web.memory_bytes()
        seconds, received = client.export(kind)
        more = max(peak - idle[worker] for worker, peak in web.memory_bytes().items())
        say(f"{name}: {received / _MB:,.0f} MB in {seconds:.1f} s")
        what = f"API: export of {jobs:,} jobs as {name}"
        yield Figure(f"api_{name}", what, jobs / seconds, "rows/s", at_least=50_000)
        what = "API: memory of its worker process, above the one before"
        yield Figure(f"api_{name}_memory", what, more / _MB, "MB", at_most=200)


def _p95(name: str, what: str, seconds: list[float], at_most_ms: float) -> Figure:
    p95 = quantiles(seconds, n=20, method="inclusive")[-1]
    return Figure(name, what, 1000 * p95, "ms", at_most=at_most_ms)
