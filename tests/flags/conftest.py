"""Jobs and their counters, for tests of flags."""

import pytest

from tests.logs import at, job_stats, sacct

MDT = "lake-MDT0000"


@pytest.fixture
def jobs(logs, ingest):
    """Ingest jobs of anvil."""
    return lambda *runs: ingest("sacct", logs(f"s{hash(runs)}", sacct(*runs)), cluster="anvil")


@pytest.fixture
def read(logs, ingest):
    """Ingest the MDT's count of stats by job 77 at a time of day; None: no record."""

    def run(clock, stats):
        entries = {"login1.bash": {"open": 1}}
        if stats is not None:
            entries["77"] = {"getattr": stats}
        text = job_stats(MDT, entries, snapshot=clock)
        return ingest("job_stats", logs(f"read-{clock}", text), at=at(clock).isoformat())

    return run
