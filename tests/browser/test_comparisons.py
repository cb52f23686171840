"""Comparisons in the browser: two clicks from home, accessible, printable, any width."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import transaction
from playwright.sync_api import expect

from tests.browser.charts import drawn
from tests.browser.test_accessibility import FINISH, LEVELS, OF_THEME, OPEN_ALL, violations
from tests.web.comparisons import campaigns
from tests.web.comparisons.campaigns import CHANGED, DAYS

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def arms(heavy_job):
    """The query of a comparison of jobs before and after a change."""
    with transaction.atomic():
        campaigns.add(heavy_job.cluster)
    length = timedelta(days=DAYS)
    return urlencode(
        {
            "arm": [
                urlencode({"user": "alice", "start": start.isoformat(), "end": end.isoformat()})
                for start, end in ((CHANGED - length, CHANGED), (CHANGED, CHANGED + length))
            ]
        },
        doseq=True,
    )


def test_this_month_is_compared_with_the_last_in_two_clicks(visit, arms):
    page = visit("/")
    page.get_by_role("main").get_by_role("link", name="Compare", exact=True).click()
    page.get_by_role("button", name="Last 30 days against the 30 before").click()

    expect(page).to_have_url(re.compile(r"/compare/\?arm=start"))
    expect(page.get_by_role("heading", name=re.compile(r"No jobs in \d+ \w+ to"))).to_be_visible()


def test_a_comparison_is_read_switched_and_printed(visit, arms):
    page = visit(f"/compare/?{arms}", reduced_motion="reduce")
    expect(page.get_by_text(re.compile(r"Opens fell [34]\.\d+"))).not_to_have_count(0)
    page.get_by_label("Metric", exact=True).select_option("opens")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", name="Distribution of opens")).to_be_visible()
    for name in ("ratios", "days", "completed", "distributions", "boxes", "histogram", "mix"):
        expect(drawn(page, name).locator(".main-svg").first).to_be_visible()

    page.evaluate(Axe().axe_script)
    page.evaluate(OPEN_ALL)
    assert violations(page, type="tag", values=LEVELS) == []
    page.emulate_media(color_scheme="dark")
    page.evaluate(FINISH)
    assert violations(page, type="rule", values=OF_THEME) == []
    for width in (390, 3840):
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.emulate_media(media="print")
    expect(page.get_by_role("heading", name="Conclusion")).to_be_visible()
    expect(page.get_by_role("heading", name="Presets")).to_be_hidden()


def test_a_zoom_into_aligned_timelines_is_undone(visit, heavy_job):
    page = visit(f"/compare/jobs/?job={heavy_job.pk}")
    chart = drawn(page, "overlay-opens")
    box = chart.locator(".nsewdrag").bounding_box()
    labels = chart.locator(".xtick text")
    expect(labels.last).to_have_text("60")
    page.mouse.move(box["x"] + 10, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 20, steps=5)
    page.mouse.up()
    expect(labels.filter(has_text=re.compile("^60$"))).to_have_count(0)
    page.mouse.dblclick(box["x"] + 40, box["y"] + 40)

    expect(labels.last).to_have_text("60")
