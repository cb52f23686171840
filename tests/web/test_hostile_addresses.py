"""Whatever stands in an address, the answer is a page, a refusal or 'not found'."""

from itertools import product

import pytest

VALUES = [
    "",
    "\x00",
    "-1",
    "9" * 400,
    "1e999",
    "NaN",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59-12:00",
    "2017-07-05T12:00:00",
    "'; DROP TABLE jobs_job; --",
    "<script>alert(1)</script>",
    "\U0001f4a5" * 300,
    "-" + "a" * 5_000,
]
PAGES = {
    "/jobs/": ["q", "user", "name", "cluster", "start", "end", "nodes_min", "state"],
    "/jobs/?": ["quality", "sort", "columns", "page", "format"],
    "/jobs/{job}/": ["start", "launch"],
    "/jobs/{job}/timelines/rpcs/": ["start", "end", "format"],
    "/jobs/{job}/rpcs/": ["start", "end", "launch", "format"],
    "/jobs/{job}/panda/": ["format"],
    "/jobs/anvil/1/": ["array_index"],
    "/populations/": ["user", "start", "opens_from", "read_bytes_below", "beside", "scale", "bars"],
    "/populations/?": ["format", "q"],
    "/populations/further/": ["beside", "nodes_min", "format"],
    "/populations/histograms/opens/": ["beside", "scale", "opens_below", "format"],
    "/": ["hours"],
    "/load/": ["hours", "format"],
    "/search/": ["q"],
    "/trends/": ["user", "node", "start", "end", "step", "metric", "hours", "scale"],
    "/trends/opens/": ["start", "step", "metric", "format"],
    "/users/": ["q", "start", "sort", "page", "format"],
    "/users/alice/": ["start", "end", "format"],
    "/projects/": ["sort", "page"],
    "/ingest/": ["name", "kind", "server", "target", "cluster", "rejects", "page", "format"],
    "/ingest/segments/{segment}/": ["reason", "page", "format"],
    "/ingest/coverage/": ["start", "end", "format"],
    "/ingest/nids/": ["q", "page"],
    "/ingest/pending/": ["q", "page"],
    "/servers/": ["format"],
    "/servers/mds1/": ["start", "end", "service", "format"],
}


def test_no_address_breaks_a_page(db, as_staff, heavy_job, settings):
    settings.TIME_ZONE = "America/New_York"  # west of UTC, and with daylight saving
    names = {"job": heavy_job.pk, "segment": heavy_job.records.get().segment_id}

    for path, parameters in PAGES.items():
        for parameter, value in product(parameters, VALUES):
            answer = as_staff.get(path.format_map(names), {parameter: value})

            assert answer.status_code in {200, 302, 400, 404}, (path, parameter, value)
            if answer.streaming:
                assert list(answer.streaming_content)


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/anvil/%00/",
        "/jobs/99999999999999999999/",
        "/jobs/x/",
        "/trends/nonsense/",
        "/users/%00/",
        "/projects/%0a/",
    ],
)
def test_no_path_breaks_a_page(as_staff, path):
    assert as_staff.get(path).status_code == 404
