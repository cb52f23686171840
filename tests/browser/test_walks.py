"""From the home page to the user behind a histogram bar, by mouse and by keyboard."""

import re

import pytest
from playwright.sync_api import expect

from ioportal.jobs import statistics
from ioportal.telemetry.stage_runs import drain
from tests.browser.charts import drawn
from tests.browser.keyboard import go
from tests.logs import Run, at, job_stats, sacct
from tests.web import stories

pytestmark = [
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def _light_jobs(heavy_job, tmp_path_factory):
    """Ingest two jobs of bob that open 100 files each."""
    folder = tmp_path_factory.mktemp("light-jobs")
    light = {"3567200": "n3", "3567201": "n4"}
    runs = [Run(job, "14:00", "14:20", nodes, user="bob") for job, nodes in light.items()]
    stories.ingest(folder, "sacct", sacct(*runs), cluster="anvil")
    for clock, opens in (("14:00", 1), ("14:10", 60), ("14:20", 100)):
        entries = {job: {"open": opens} for job in light}
        stories.ingest(folder, "job_stats", job_stats("lake-MDT0000", entries), at=at(clock))
    drain(statistics.refresh_statistics)


def click_bar(page, figure, number):
    """Click a histogram bar."""
    bars = drawn(page, figure).locator(".barlayer .trace").first
    bar = bars.locator(".point path").nth(number)
    bar.evaluate("bar => bar.scrollIntoView({ block: 'center' })")
    box = bar.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


@pytest.mark.long
def test_a_bar_leads_to_its_job_and_the_job_to_its_user(visit):
    page = visit("/")

    page.get_by_role("link", name="Analyse").click()
    page.get_by_role("link", name="Populations").click()
    click_bar(page, "opens", -1)
    expect(page).to_have_url(re.compile(r"/jobs/\?opens_from=\d+&opens_below=\d+$"))
    expect(page.locator(".found")).to_contain_text("1 job")
    page.get_by_role("link", name="3567126").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("3567126")
    page.get_by_role("link", name="alice").first.click()

    expect(page).to_have_url(re.compile(r"/users/alice/$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("alice")


@pytest.mark.long
def test_a_keyboard_user_reaches_the_user_page(visit):
    page = visit("/")

    go(page, "Analyse")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Users by")
    go(page, "Populations")
    expect(page.get_by_role("heading", level=1)).to_have_text("All jobs")
    go(page, "Table")
    go(page, "1")  # job of so many bytes
    expect(page.locator(".found")).to_contain_text("1 job")
    go(page, "3567126")
    expect(page.get_by_role("heading", level=1)).to_contain_text("3567126")
    go(page, "alice")

    expect(page).to_have_url(re.compile(r"/users/alice/$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("alice")
