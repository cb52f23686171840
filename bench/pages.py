"""Pages: time of the server, number of database queries, and bytes sent.

Requests use Django's test client: URL, middleware, session, view, template, gzip; no network and
no web server. Later pages are sent without scripts and styles, which browsers cache under names
that change with their content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain, product
from statistics import median, quantiles
from time import monotonic
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bench import centre
from bench.figures import Figure, say
from ioportal.jobs.models import Job, Population
from ioportal.web.jobs.columns import BY_NAME
from ioportal.web.jobs.job_list import DEFAULT_SORT

if TYPE_CHECKING:
    from collections.abc import Iterator

DEMO, MANY = 25_000, 1_000_000
_ROUNDS = {DEMO: 10, MANY: 3}  # after a warm-up request
_MOST_KB = 100

_JUNE = "start=2024-06-01T00:00:00Z&end=2024-07-01T00:00:00Z"
_FILTERS = (
    "user=u1",
    "user=u3,u4",
    "user=u40q2",
    "user=nobody",
    "project=prj7",
    "queue=debug",
    "cluster=c3",
    "name=run_3",
    "name=nothing",
    "node=c1-node17",
    "start=2024-12-31T00:00:00Z",
    "end=2024-01-02T00:00:00Z",
    "start=2024-06-01T00:00:00Z&end=2024-06-02T00:00:00Z",
    _JUNE,
    "nodes_min=1000",
    "nodes_max=1",
    "state=completed",
    "state=node_fail",
    "quality=poor",
    "quality=none",
    "opens_from=1000000",
    "read_bytes_from=1000000&read_bytes_below=2000000",
    "q=3010000",
    f"user=u1&{_JUNE}",
    "state=failed&cluster=c1&quality=good",
    f"project=prj7&state=failed&state=timeout&{_JUNE}",
)
_SORTS = tuple(f"{direction}{name}" for name in BY_NAME for direction in ("", "-"))
# With filters; columns of each kind: facts, times, figures, and counts of one operation.
_SORTS_OF_FILTERED = ("user", "-node_count", "-ended", "-metadata_operations", "-count_getattr")
_POPULATIONS = (
    "",
    "state=completed",
    "nodes_min=1",
    "user=u1",
    "quality=good",
    _JUNE,
    "user=u1&compare=user%3Du2",
)
_TRENDS = ("", "user=u1", _JUNE)


@dataclass(frozen=True)
class Pages:
    """Pages with one limit, for one user."""

    name: str
    what: str
    addresses: tuple[str, ...]
    at_most_ms: float | None = None
    cold_at_most_ms: float | None = None  # without cache; requested once
    person: str = centre.STAFF


@dataclass
class Timing:
    """Measurements of one address: milliseconds, queries, bytes sent."""

    address: str
    cold: float
    warm: list[float]
    queries: int
    sent: int


@dataclass
class Group:
    """Measurements of pages with one limit."""

    pages: Pages
    timings: list[Timing] = field(default_factory=list)

    @property
    def slowest(self) -> Timing:
        """The page with the largest median."""
        return max(self.timings, key=lambda timing: median(timing.warm))

    def figures(self, jobs: int) -> Iterator[Figure]:
        """Yield p95; for several pages also p50 and the slowest; with a limit, the slowest cold."""
        name, what = f"{self.pages.name}_{jobs}", f"{self.pages.what}, {jobs:,} jobs"
        all_warm = list(chain.from_iterable(timing.warm for timing in self.timings))
        p95 = quantiles(all_warm, n=20, method="inclusive")[-1]
        limit = self.pages.at_most_ms
        yield Figure(f"{name}_p95", f"{what}: p95", p95, "ms", at_most=limit)
        if len(self.timings) > 1:
            slowest = self.slowest
            label = f"{what}: slowest, `{slowest.address}`"
            yield Figure(f"{name}_p50", f"{what}: p50", median(all_warm), "ms")
            yield Figure(f"{name}_slowest", label, median(slowest.warm), "ms", at_most=limit)
        if self.pages.cold_at_most_ms is not None:
            cold = max(timing.cold for timing in self.timings)
            yield Figure(
                f"{name}_cold",
                f"{what}: slowest cold",
                cold,
                "ms",
                at_most=self.pages.cold_at_most_ms,
            )


def measure(scale: float) -> Iterator[Figure]:
    """Request every page of a centre of demo size, and pages about many jobs of a large one."""
    for jobs, pages_of in ((DEMO, _every_page), (int(MANY * scale), _of_many)):
        with centre.filled(jobs):
            groups = [Group(pages) for pages in pages_of()]
            for group in groups:
                client = client_of(group.pages.person)
                for address in group.pages.addresses:
                    group.timings.append(_measure(client, address, jobs))
                    _report(group.timings[-1], group.pages.at_most_ms)
            for group in groups:
                yield from group.figures(jobs)
            sent = max(timing.sent for group in groups for timing in group.timings)
            yield Figure(
                f"sent_{jobs}",
                f"Largest page as sent, {jobs:,} jobs",
                sent / 1000,
                "kB",
                at_most=_MOST_KB,
            )


def _every_page() -> Iterator[Pages]:
    traced = Job.objects.filter(ended_at=None).earliest("started_at")
    named = Population.objects.create(name="June", slug="june", query=_JUNE, is_shared=True)
    job = f"/jobs/{traced.pk}"
    addresses = (
        "/",
        "/load/?format=json",
        "/search/?q=u1+u2+prj7+c1-node17",
        "/styleguide/",
        "/jobs/",
        "/jobs/?sort=-metadata_operations",
        "/jobs/?page=200",
        f"{job}/",
        f"{job}/rpcs/?format=json",
        f"{job}/similar-jobs/?format=json",
        f"{job}/panda/?format=json",
        f"{job}/timelines/metadata/?format=json",
        f"/populations/{named.slug}/",
        "/populations/histograms/opens/?format=json",
        "/trends/",
        "/trends/?step=day",
        "/trends/jobs-ended/?format=json",
        "/users/",
        "/users/u1/",
        "/projects/",
        "/projects/prj7/",
        "/ingest/",
        "/ingest/files/1/",
        "/ingest/coverage/",
        "/ingest/nids/",
        "/ingest/pending/",
    )
    for address in addresses:
        yield Pages(
            address.partition("?")[0].strip("/").replace("/", "_") or "home",
            f"`{address}`",
            (address,),
            200,
        )
    yield Pages(
        "populations",
        "Populations",
        ("/populations/", "/populations/other-metrics/", "/populations/?state=completed"),
        at_most_ms=200,
        cold_at_most_ms=300,
    )
    for name, what, paths in (
        ("impact", "Impact analysis", ("/incidents/impact/", "/incidents/impact/?last=24h")),
        ("panda_populations", "Populations of PanDA jobs", ("/populations/?unit=panda",)),
        ("panda_trends", "Trends of PanDA jobs", ("/trends/?unit=panda",)),
    ):
        yield Pages(name, what, paths, at_most_ms=200, cold_at_most_ms=1000)
    for person in (centre.HEAVY_USER, centre.OTHER_USER):
        own = ("/", "/jobs/", "/populations/", f"/users/{person}/")
        yield Pages(f"of_{person}", f"Pages of user {person}", own, 200, person=person)


def _of_many() -> Iterator[Pages]:
    sorts = (f"/jobs/?sort={sort}" for sort in _SORTS if sort != DEFAULT_SORT)
    yield Pages("sorts", "Job list, any sort", ("/jobs/", *sorts), 200)
    yield Pages(
        "filters", "Job list, any filter", tuple(f"/jobs/?{each}" for each in _FILTERS), 200
    )
    yield Pages(
        "filters_sorts",
        "Job list, filters and sorts",
        tuple(f"/jobs/?{each}&sort={sort}" for each, sort in product(_FILTERS, _SORTS_OF_FILTERED)),
        200,
    )
    yield Pages("last_page", "Job list, last page", ("/jobs/?sort=-opens&page=200",), 200)
    for person in (centre.HEAVY_USER, centre.OTHER_USER):
        tried = ("", "?sort=-metadata_operations", "?sort=-count_getattr", "?state=failed")
        own = tuple(f"/jobs/{query}" for query in tried)
        yield Pages(f"list_of_{person}", f"Job list of user {person}", own, 200, person=person)
    yield Pages(
        "populations",
        "Populations",
        tuple(f"/populations/?{query}" for query in _POPULATIONS),
        at_most_ms=200,
        cold_at_most_ms=1500,
    )
    yield Pages("trends", "Trends", tuple(f"/trends/?{query}" for query in _TRENDS))


def client_of(person: str) -> Client:
    """Return a browser with a logged-in user."""
    client = Client(SERVER_NAME="localhost", headers={"accept-encoding": "gzip"})
    client.force_login(User.objects.get(username=person))
    return client


def _measure(client: Client, address: str, jobs: int) -> Timing:
    cache.clear()
    cold, _ = timed(client, address)
    answers = [timed(client, address) for _ in range(_ROUNDS.get(jobs, _ROUNDS[MANY]))]
    with CaptureQueriesContext(connection) as queries:
        client.get(address)
    return Timing(address, cold, [ms for ms, _ in answers], len(queries), answers[-1][1])


def timed(client: Client, address: str) -> tuple[float, int]:
    """Return the milliseconds and the bytes of a page.

    Raises:
        ValueError: another response.
    """
    began = monotonic()
    answer = client.get(address)
    sent = sum(map(len, answer)) if answer.streaming else len(answer.content)
    ms = 1000 * (monotonic() - began)
    if answer.status_code != HTTPStatus.OK:
        raise ValueError(f"{address} answers {answer.status_code}.")
    return ms, sent


def _report(timing: Timing, at_most_ms: float | None) -> None:
    p50, slowest = median(timing.warm), max(timing.warm)
    over = "  OVER" if at_most_ms and p50 > at_most_ms else ""
    say(
        f"cold {timing.cold:6.0f}  p50 {p50:6.0f}  max {slowest:6.0f} ms"
        f"  {timing.queries:3} queries  {timing.sent / 1000:6.1f} kB  {timing.address}{over}"
    )
