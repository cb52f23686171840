"""Numbers of queries of pages, with little and with more data."""

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ioportal.ingest.models import Segment
from ioportal.jobs.models import Job, Population
from tests.logs import Run, at, job_stats, sacct


@pytest.fixture
def loaded(site, logs, ingest, refresh):
    """Load jobs by number, their operations, and ids without accounting."""

    def load(*numbers):
        runs = [Run(f"{number}", user=f"u{number}", project=f"p{number}") for number in numbers]
        ingest("sacct", logs(f"jobs-{numbers[0]}", sacct(*runs)), cluster="anvil")
        for number in numbers:
            clock = f"12:{number:02d}"
            entries = {f"{number}": {"open": number}, f"9{number}": {"open": number}}
            text = job_stats("lake-MDT0000", entries)
            ingest("job_stats", logs(f"lake-{clock}", text), at=at(clock).isoformat())
        refresh()

    return load


def test_numbers_of_queries_do_not_grow_with_data(as_staff, loaded):
    Population.objects.create(name="June", slug="june", is_shared=True)
    loaded(10, 11)
    segment = Segment.objects.filter(format="job_stats").earliest("pk").pk
    job = Job.objects.get(batch_id="11").pk
    pages = {
        "/load/?format=json": 10,
        "/search/?q=u10+u11": 14,
        "/styleguide/": 4,
        f"/jobs/{job}/similar-jobs/?format=json": 4,
        f"/jobs/{job}/timelines/metadata/?format=json": 10,
        "/populations/june/": 16,
        "/populations/other-metrics/": 12,
        "/populations/histograms/opens/?format=json": 12,
        "/trends/jobs-ended/?format=json": 22,
        "/trends/opens/?format=json": 24,
        "/load-ramp/": 29,
        "/load-ramp/bins/?unit=panda&format=json": 11,
        "/mitigations/": 4,
        "/trends/change-points/": 20,
        "/users/?format=csv": 5,
        "/projects/": 8,
        "/ranking/": 17,
        "/ranking/?of=task&per=node_hour": 14,
        "/projects/p11/": 36,
        "/ingest/?format=csv": 3,
        f"/ingest/files/{segment}/": 8,
        "/ingest/coverage/": 28,
        "/ingest/nids/": 7,
        "/ingest/storage/": 36,
        "/overview/operations/?start=2017-07-05T12:00Z&end=2017-07-05T13:00Z": 24,
        "/ingest/pending/": 8,
        "/ingest/pending/?format=csv": 4,
    }

    assert _query_counts(as_staff, pages) == pages
    loaded(*range(12, 20))
    assert _query_counts(as_staff, pages) == pages


def _query_counts(client, pages):
    """Return the number of queries of each page, without cache, including streams."""
    counts = {}
    for page in pages:
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(page)
            assert answer.status_code == 200, page
            b"".join(answer)
        counts[page] = len(queries)
    return counts
