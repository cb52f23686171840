"""Staff back-test a threshold, set it and see its effect, in the browser with a worker."""

import re
import subprocess
import sys

import pytest
from kombu import Connection
from playwright.sync_api import expect

from ioportal.celery import app
from ioportal.core.stages import EVALUATE, RUN_BACK_TESTS
from ioportal.findings import evaluation
from ioportal.findings.models import Case, Flag
from ioportal.jobs import statistics
from ioportal.telemetry.stage_runs import drain
from tests.conftest import REPOSITORY, broker_of_our_own
from tests.logs import Run, at, job_stats, sacct
from tests.processes import ENDS_WITH_PARENT
from tests.web import stories

pytestmark = [
    pytest.mark.long,
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]

WITHIN_MS = 60_000


@pytest.fixture
def send(environment):
    """Send a task to a worker that ends before the tables are emptied."""
    command = [sys.executable, "-m", "celery", "--quiet", "--app", "ioportal.celery", "worker"]
    with Connection(broker_of_our_own()) as broker:
        worker = subprocess.Popen(
            [*ENDS_WITH_PARENT, *command, "--pool=solo", "--loglevel=WARNING"],
            env=environment,
            cwd=REPOSITORY,
        )
        yield lambda name: app.send_task(name, connection=broker)
        worker.terminate()
        worker.wait()
        app.control.purge(broker)


@pytest.fixture(autouse=True)
def _two_jobs(heavy_job, tmp_path):
    """Ingest an ended job of bob and a running job of carol, with 80,000 stats each."""
    ended = Run("3567200", "14:00", "14:30", "n3", user="bob")
    runs = Run("3567201", "14:00", None, "n4", user="carol")
    stories.ingest(tmp_path, "sacct", sacct(ended, runs), cluster="anvil")
    for n in range(4):
        stats = {job.batch_id: {"getattr": 27_000 * n} for job in (ended, runs) if n}
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **stats})
        stories.ingest(tmp_path, "job_stats", text, at=at(f"14:{n}0"))
    drain(statistics.refresh_statistics)
    drain(evaluation.evaluate_pending)


def test_a_threshold_is_tested_and_set(visit, send, eventually):
    page = visit("/rules/")

    page.get_by_role("link", name="Excessive metadata operations").click()
    page.get_by_label("Metadata operations of the job").fill("50000")
    page.get_by_role("button", name="Test on this period").click()
    expect(page.get_by_text("Waiting for a worker.")).to_be_visible()
    send(RUN_BACK_TESTS)
    verdict = "flag 1 job of 1 user in 1 case, current thresholds 0 jobs: 1 added."
    expect(page.get_by_text(verdict)).to_be_visible(timeout=WITHIN_MS)
    expect(page.get_by_role("row").filter(has_text="bob")).to_contain_text("flagged")

    page.get_by_role("link", name="Change or set these thresholds").click()
    expect(page.get_by_label("Metadata operations of the job")).to_have_value("50000")
    page.get_by_label("Reason", exact=True).fill("Fewer are enough here.")
    page.get_by_role("button", name="Set thresholds").click()
    expect(page.get_by_role("status")).to_contain_text("Thresholds set, everywhere.")
    send(EVALUATE)

    eventually(Case.objects.filter(rule="metadata-operations").exists, seconds=60)
    flag = Flag.objects.get(rule="metadata-operations")
    assert (flag.owner, flag.severity) == ("carol", Flag.Severity.NOTICE)  # a small load
    history = page.locator("[aria-labelledby=history]")
    expect(history).to_contain_text(re.compile(r"2,000,000\s+→\s*to\s+50,000"))
    expect(history).to_contain_text("Fewer are enough here.")
    page.get_by_role("link", name="Rules").first.click()
    row = page.get_by_role("row").filter(has_text="Excessive metadata operations")
    expect(row).to_contain_text(re.compile(r"50,000.*set by sam.*0\s*1", re.DOTALL))
