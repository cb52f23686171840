"""A short run of `make chaos`."""

import shutil
import tempfile
from pathlib import Path

import psycopg
import pytest

from chaos import report
from chaos.installation import Installation
from chaos.run import Run
from scripts.services.choice import choose

pytestmark = pytest.mark.long


@pytest.fixture
def site():
    if choose().servers is None:
        pytest.skip("the database is external, and this test kills it")
    folder = Path(tempfile.mkdtemp(prefix="ioportal-chaos-"))  # a short path, for sockets
    site = Installation(folder)
    try:
        site.start()
        yield site
    finally:
        site.stop()
        shutil.rmtree(folder)


def test_killed_processes_lose_and_duplicate_no_operation(site):
    run = Run(site)

    assert [(outcome.wrong, outcome.inconclusive) for outcome in run.seeds([1])] == [([], "")]
    assert run.conclude() == []
    assert run.is_delivered
    with psycopg.connect(site.database) as database:
        assert database.execute("SHOW is_superuser").fetchone() == ("off",)


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ((0, 0, True), ""),
        ((2, 0, True), "2 batches in the spools"),
        ((0, 7, False), "7 pending intervals, input that is not written or delivered"),
    ],
)
def test_unfinished_work_is_inconclusive_and_never_a_loss(left, expected):
    batches, pending, is_read = left
    reason = report.unfinished(batches, pending, is_read=is_read)
    line = report.Outcome(3, inconclusive=reason).line(1, 1)

    assert reason == expected
    assert ("lost" in line) == (not reason)
    assert (f"inconclusive: {reason}" in line) == bool(reason)
