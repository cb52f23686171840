"""Triage of cases by keyboard."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.charts import drawn
from tests.browser.keyboard import go
from tests.logs import Run, at, job_stats, sacct
from tests.web import stories

pytestmark = [
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]


@pytest.fixture
def _flagged(evaluate, tmp_path):
    """Ingest and evaluate two jobs of carol that open 2,500,000 files each."""
    jobs = ("3567300", "3567301")
    runs = [
        Run(job, "15:00", "15:20", f"n{6 + n}", user="carol", name="ab"[n])
        for n, job in enumerate(jobs)
    ]
    stories.ingest(tmp_path, "sacct", sacct(*runs), cluster="anvil")
    for clock, opens in (("15:00", 1), ("15:10", 1_200_000), ("15:20", 2_500_000)):
        entries = {job: {"open": opens} for job in jobs}
        stories.ingest(tmp_path, "job_stats", job_stats("lake-MDT0000", entries), at=at(clock))
    evaluate()


@pytest.mark.long
@pytest.mark.usefixtures("_flagged")
def test_cases_are_triaged_by_keyboard(visit):
    page = visit("/cases/?rule=metadata-operations")
    keys = page.keyboard

    keys.press("?")
    expect(page.get_by_text("acknowledge the selected cases, or this one")).to_be_visible()
    for key in ("j", "x", "j", "x"):
        keys.press(key)
    expect(page.locator("input[name='case']:checked")).to_have_count(2)
    page.get_by_label("Reason or comment").focus()
    keys.type("jxe?")
    expect(page.get_by_label("Reason or comment")).to_have_value("jxe?")
    page.locator("[data-open]").first.focus()
    keys.press("e")
    expect(page.get_by_text("2 cases acknowledged.")).to_be_visible()
    expect(page.locator("[data-open]").first).to_be_focused()
    page.get_by_label("Severity").select_option("warning")
    expect(page).to_have_url(re.compile("severity=2"))

    page.locator("[data-open]").first.focus()
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Excessive metadata operations")
    page.get_by_label("Reason or comment").focus()
    keys.type("moved conda to CVMFS")
    go(page, "Resolve")

    expect(page.get_by_text("1 case resolved.")).to_be_visible()
    expect(page.get_by_role("region", name="History")).to_contain_text("moved conda to CVMFS")
    page.get_by_role("link", name="job 3567").click()
    drawn(page, "evidence")
