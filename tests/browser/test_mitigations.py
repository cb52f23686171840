"""Staff log a mitigation, and see its mark on the chart of a job."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.charts import drawn

pytestmark = [
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]


def test_a_logged_mitigation_is_marked_on_the_jobs_that_it_concerns(visit, heavy_job):
    page = visit("/")

    page.get_by_role("link", name="Analyse").click()
    page.get_by_role("link", name="Mitigations").click()
    page.get_by_role("main").get_by_role("link", name="Log a mitigation").first.click()
    page.get_by_label("Title").fill("Fewer <b>opens</b>")
    page.get_by_label("Kind").select_option("code fix")
    page.get_by_label("Start").fill("2017-07-05 12:30")
    page.get_by_label("Jobs").fill("user=alice")
    page.get_by_label("Metric").select_option("Opens")
    page.get_by_label("Expected change").select_option("falls")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Enter how many times.")).to_be_visible()
    page.get_by_label("Times").fill("4")
    page.get_by_role("button", name="Save").click()

    expect(page).to_have_url(re.compile(r"/mitigations/\d+/$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Fewer <b>opens</b>")
    expect(page.get_by_text("Opens falls 4\N{MULTIPLICATION SIGN}")).to_be_visible()
    page.goto(f"{page.url.partition('/mitigations/')[0]}/jobs/{heavy_job.pk}/")
    expect(drawn(page, "opens-closes")).to_contain_text("Fewer <b>opens</b>")
