"""Users and projects with names that pages use for something else."""

import json

import pytest

from tests import loading
from tests.logs import Run, at, job_stats, sacct

NAMES = ["start", "end", "source", "observed", "seconds", "other", "all others", "bin", "usual"]


@pytest.fixture(scope="module", autouse=True)
def _loads(module_site, module_logs):
    """Load a job of each name, with operations."""
    jobs = {str(number): name for number, name in enumerate(NAMES, start=100)}
    runs = [
        Run(number, user=name, project=name, nodes="n1", start="12:00", end="12:09")
        for number, name in jobs.items()
    ]
    loading.ingest("sacct", module_logs("sacct", sacct(*runs)), cluster="anvil")
    for read, opens in (("12:00", 1), ("12:05", 1_000), ("12:10", 3_000)):
        entries = {number: {"open": opens + int(number)} for number in jobs}
        text = job_stats("lake-MDT0000", entries, snapshot=at(read))
        loading.ingest("job_stats", module_logs(f"job_stats-{read}", text, read_at=at(read)))


@pytest.mark.parametrize("address", ["/", "/overview/?by=user", "/overview/?by=project"])
def test_pages_draw_any_name(as_staff, address):
    assert "\u201cstart\u201d" in as_staff.get(address).content.decode()


def test_exports_have_rows_for_any_name(as_staff):
    answer = as_staff.get("/overview/operations/?by=user&format=json").getvalue()
    rows = json.loads(answer)["rows"]

    assert {"all others", "\u201call others\u201d"} <= {row["principal"] for row in rows}
