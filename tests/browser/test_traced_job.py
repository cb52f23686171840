"""A newcomer uploads the log of a traced job and learns what to fix."""

import re

import pytest
from playwright.sync_api import expect

from ioportal.experiments import uploads
from simulator.experiments import strace as simulated


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("strace") / "job.strace"
    simulated.write(path, simulated.Job(seed=2, scale=0.01).groups)
    return path


@pytest.mark.long
def test_a_newcomer_uploads_a_log_and_reads_the_finding(visit, log):
    page = visit("/experiments/")
    page.get_by_role("link", name="Upload files").click()
    page.get_by_label("Files").set_input_files(log)
    page.get_by_label("Experiment", exact=True).fill("My job")
    page.get_by_role("button", name="Upload").click()

    expect(
        page.get_by_role("heading", name=re.compile("waiting|pending", re.IGNORECASE))
    ).to_be_visible()
    uploads.load_next(10)
    page.get_by_role("link", name="Show the experiment").click()

    findings = page.get_by_role("region", name="Findings")
    expect(findings).to_contain_text(re.compile(r"\d+ % of the opens on Lustre fail"))
    for entry in simulated.UNNEEDED:
        expect(findings).to_contain_text(entry)
    entries = page.get_by_role("group", name="Search-path entries")
    for entry in simulated.UNNEEDED:
        row = entries.get_by_role("row").filter(has_text=entry)
        expect(row.get_by_text("remove", exact=True)).to_be_visible()
    chart = page.get_by_role("img", name=re.compile("Wasted look-ups by search-path entry"))
    chart.scroll_into_view_if_needed()
    expect(chart.locator(".main-svg").first).to_be_visible()
    page.locator("summary").filter(has_text="Names by wasted look-ups").click()
    names = page.get_by_role("group", name="Names by wasted look-ups")
    expect(names.get_by_role("row").nth(1)).to_contain_text("failed")
