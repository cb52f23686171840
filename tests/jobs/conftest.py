"""Jobs and reads of counters, the statistics that follow, and reports."""

import json

import pytest

from ioportal.jobs.models import JobStatistics
from tests.jobs.polls import MDT
from tests.logs import at, job_stats, sacct


@pytest.fixture
def read(logs, ingest):
    """Load a read of a target's counters at a time of day."""

    def run(clock, *texts, form="job_stats"):
        path = logs(f"{form}-{clock}-{len(texts[0])}", *texts)
        return ingest(form, path, at=at(clock).isoformat())

    return run


@pytest.fixture
def jobs(logs, ingest):
    """Load jobs of anvil."""
    return lambda *runs: ingest("sacct", logs(f"s{hash(runs)}", sacct(*runs)), cluster="anvil")


@pytest.fixture
def figures(refresh):
    """Run the stage and return the statistics of a job."""

    def run(batch_id="77"):
        refresh()
        return JobStatistics.objects.get(job__batch_id=batch_id)

    return run


@pytest.fixture
def polled(logs, ingest):
    """Load reads of the MDT: opens by time, and other operations as multiples of opens."""

    def run(opens_by_clock, **factors):
        paths = []
        for clock, opens in opens_by_clock.items():
            counters = {"open": opens} | {kind: factor * opens for kind, factor in factors.items()}
            text = job_stats(MDT, {"77": counters}, snapshot=clock)
            paths.append(logs(f"polled-{clock}", text, read_at=at(clock)))
        ingest("job_stats", *paths)

    return run


@pytest.fixture
def reports(call):
    """Reports as JSON."""
    return lambda *arguments: json.loads(call("rpc_report", "--json", *arguments))
