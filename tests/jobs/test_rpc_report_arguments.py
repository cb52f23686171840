"""Arguments of RPC reports: principals, ranges, and invalid requests."""

import re

import pytest
from django.core.management import CommandError

from tests.loading import ingest
from tests.logs import Run, at, rpc, sacct


@pytest.fixture(scope="module")
def _busy(module_site, module_logs):
    """A minute with a job, a process and a host; every RPC takes 30 us after 10 us in the queue."""
    lines = [
        rpc(f"12:00:{second:02}", nid, job=job)
        for second in range(60)
        for nid, job in (("1@gni", ""), ("9@gni", "cp.0"), ("8@gni", ""))
    ]
    ingest("rpctrace", module_logs("t", "\n".join(lines)), server="mds1")
    ingest("sacct", module_logs("s", sacct(Run("77", start="11:00"))), cluster="anvil")


@pytest.mark.usefixtures("_busy")
@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["--job", "77"], 60),
        (["--process", "cp.0"], 60),
        (["--host", "n8"], 60),
        (["--host", "8@gni"], 60),
        (["--kind", "process"], 60),
        (["--kind", "pending"], 0),
        ([], 180),
        (["--from", "2017-07-05T12:00:20Z", "--to", "2017-07-05T12:00:40Z"], 60),
        (["--job", "77", "--to", "2017-07-05T12:00:20Z"], 20),
    ],
)
def test_reports_by_principal_and_range(reports, arguments, count):
    [report] = reports(*arguments)

    assert report["overall"]["count"] == count
    if count:
        assert report["overall"]["queue"] == {"min_us": 10, "mean_us": 10.0, "max_us": 10}


@pytest.mark.usefixtures("_busy")
@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("12:00:20", "12:00:40"),
        ("12:00:23", "12:00:28"),
        ("12:00:25", "12:00:31"),
        ("11:00", "13:00"),
    ],
)
def test_rates_of_a_steady_minute_are_independent_of_the_range(reports, start, end):
    times = [f"--from={at(start).isoformat()}", f"--to={at(end).isoformat()}"]

    [total] = reports(*times)
    [job] = reports("--job", "77", *times)

    assert total["overall"]["per_second"] == pytest.approx(3, rel=0.02)
    assert job["overall"]["per_second"] == pytest.approx(1, rel=0.02)


@pytest.mark.usefixtures("_busy")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--launch", "1"], "Unknown launch '1'. Load its accounting"),
        (["--job", "77", "--cluster", "birch"], "Unknown job '77'"),
        (["--job", "77", "--cluster", "nowhere"], "Cluster 'nowhere' is not registered"),
        (["--cluster", "birch"], "--cluster requires --launch or --job"),
        (["--host", "n99"], "Unknown node or NID 'n99'"),
        (["--process", "cp.7"], "Unknown process 'cp.7'"),
        (["--to", "2017-07-05T11:00:00Z"], "No RPC trace covers the range. Load one"),
        (
            ["--from", "2017-07-05T13:00:00Z", "--to", "2017-07-05T11:00:00Z"],
            "--from must be before --to",
        ),
    ],
)
def test_invalid_requests_are_rejected(call, arguments, message):
    with pytest.raises(CommandError, match=re.escape(message)):
        call("rpc_report", *arguments)
