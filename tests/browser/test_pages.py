"""Visits in a browser that reports errors and requests that leave the machine."""

import csv
import re
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from playwright.sync_api import expect

from tests.browser.charts import drawn
from tests.browser.conftest import PASSWORD
from tests.logs import rpc

pytestmark = [
    pytest.mark.long,
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]

DRAWN = "[data-plot] .main-svg"


def test_a_user_opens_the_heavy_job_reads_its_timeline_and_downloads_the_csv(visit):
    page = visit("/jobs/")

    page.get_by_role("link", name="Metadata operations").click()
    expect(page).to_have_url(re.compile(r"sort=-metadata_operations"))
    page.get_by_role("link", name="3567126").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("3567126")
    drawn(page, "opens-closes")

    page.get_by_text("Table", exact=True).first.click()
    expect(page.get_by_role("group", name="Opens and closes, table")).to_contain_text("100")

    with page.expect_download() as download:
        page.locator("figure").first.get_by_role("link", name="CSV").click()
    with download.value.path().open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {float(row["open"]) for row in rows} >= {10.0, 100.0}
    assert download.value.suggested_filename == "3567126-opens-closes.csv"


def test_a_drag_zooms_all_charts_and_the_address_and_back_returns(visit, heavy_job):
    page = visit(f"/jobs/{heavy_job.pk}/")
    plot = drawn(page, "opens-closes").locator(".nsewdrag").bounding_box()
    middle = plot["y"] + plot["height"] / 2

    page.mouse.move(plot["x"] + plot["width"] * 0.2, middle)
    page.mouse.down()
    page.mouse.move(plot["x"] + plot["width"] * 0.3, middle, steps=4)
    page.mouse.move(plot["x"] + plot["width"] * 0.4, middle, steps=4)
    page.mouse.up()

    expect(page).to_have_url(re.compile(r"start=2017-07-05T12%3A1.*end=2017-07-05T12%3A2"))
    expect(page.get_by_label("From")).to_have_value(re.compile(r"2017-07-05 12:1"))
    page.go_back()
    expect(page).to_have_url(re.compile(rf"/jobs/{heavy_job.pk}/$"))
    drawn(page, "opens-closes")


def test_the_theme_is_switched_and_remembered(visit, heavy_job):
    page = visit(f"/jobs/{heavy_job.pk}/", color_scheme="light")
    line = drawn(page, "opens-closes").locator(".scatterlayer path.js-line").first
    light = line.evaluate("line => getComputedStyle(line).stroke")

    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.wait_for_function(
        "([line, light]) => getComputedStyle(line).stroke !== light",
        arg=[line.element_handle(), light],
    )
    page.reload()

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_filters_narrow_the_list_and_are_part_of_the_address(visit):
    page = visit("/jobs/")

    page.get_by_role("textbox", name="User").fill("nobody")
    page.get_by_role("textbox", name="User").press("Enter")
    expect(page.get_by_role("heading", name="No jobs match")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/jobs/\?user=nobody$"))
    page.get_by_role("link", name="Clear all").click()
    expect(page.get_by_role("link", name="3567126")).to_be_visible()

    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="Closes").check()
    page.get_by_role("button", name="Show columns").click()
    expect(page.get_by_role("columnheader", name="Closes")).to_be_visible()


@pytest.mark.parametrize("path", ["/users/", "/populations/"])
def test_typed_text_survives_a_refresh(visit, path):
    page = visit(path)

    page.get_by_role("textbox", name="User").fill("alice")
    page.get_by_role("textbox", name="Project").fill("PH")  # leaving the first asks for an answer
    expect(page).to_have_url(re.compile(rf"{path}\?user=alice$"))
    expect(page.locator("#active-filters")).to_contain_text("1 active")
    expect(page.get_by_role("textbox", name="Project")).to_have_value("PH")


def test_a_user_follows_links_from_the_busiest_principal_to_the_worst_job(visit):
    page = visit("/")

    drawn(page, "load")
    page.get_by_role("region", name="Metadata load").get_by_role("link", name="alice").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("alice")
    drawn(page, "jobs-ended")
    page.get_by_role("region", name="Heaviest jobs").get_by_role("link", name="3567126").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("3567126")
    page.get_by_role("link", name="PHY12").click()
    expect(page).to_have_url(re.compile(r"/projects/PHY12/$"))


def test_a_slash_goes_to_the_search_box_and_a_job_id_to_the_job(visit):
    page = visit("/trends/")

    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("3567126")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("3567126")

    page.get_by_role("searchbox").fill("a/b")  # a slash that is typed is a slash
    expect(page.get_by_role("searchbox")).to_have_value("a/b")


def test_trends_are_zoomed_into_and_cut_otherwise(visit):
    page = visit("/trends/?step=hour")
    box = drawn(page, "running-jobs").locator(".nsewdrag").bounding_box()
    middle = box["y"] + box["height"] / 2

    page.mouse.move(box["x"] + box["width"] * 0.2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=4)
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"start=2017-07-05T12%3A1.*end=2017-07-05T12%3A3"))

    page.get_by_role("group", name="Recent range").get_by_role("link", name="all").click()
    expect(page).to_have_url(re.compile(r"/trends/\?step=hour&last=all$"))
    page.get_by_role("link", name="day", exact=True).click()
    expect(page).to_have_url(re.compile(r"/trends/\?(?=.*last=all).*step=day"))
    page.locator(DRAWN).first.wait_for()
    page.locator("summary", has_text="Metrics").click()
    page.get_by_role("checkbox", name="Opens", exact=True).check()
    page.get_by_role("button", name="Show metrics").click()
    drawn(page, "opens")


def test_a_filter_accepts_typing_while_the_list_updates(visit):
    page = visit("/jobs/")

    page.get_by_label("Nodes at least").focus()
    page.keyboard.type("-1", delay=40)
    page.keyboard.press("Tab")
    page.keyboard.type("2000", delay=150)
    expect(page.locator(".field.nodes_min")).to_contain_text("greater than or equal to 0")
    page.get_by_label("Nodes at least").fill("2")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"\?nodes_min=2&nodes_max=2000$"))
    expect(page.locator(".field.nodes_min")).not_to_contain_text("greater")
    expect(page.get_by_label("Nodes at least")).to_have_attribute("aria-invalid", "false")
    expect(page.get_by_label("Nodes at most")).to_have_value("2000")
    expect(page.get_by_role("link", name="3567126")).to_be_visible()


def test_failed_refreshes_leave_the_charts_and_show_a_message(visit, heavy_job, complaints):
    page = visit(f"/jobs/{heavy_job.pk}/")
    drawn(page, "opens-closes")
    charts = page.locator(DRAWN).count()

    for broken, words in (
        (lambda route: route.abort(), "cannot be reached"),
        (lambda route: route.fulfill(status=503), "error 503"),
    ):
        page.route("**/jobs/*/?start=*", broken)
        page.get_by_role("link", name="Start-up").click()
        expect(page.get_by_role("alert")).to_contain_text(words)
        assert page.locator(DRAWN).count() == charts
        page.unroute("**/jobs/*/?start=*")
    complaints.clear()

    page.get_by_role("link", name="Start-up").click()
    expect(page).to_have_url(re.compile("start="))
    expect(page.locator("#failure")).to_be_hidden()


def test_a_click_after_the_session_ended_leads_to_the_log_in_and_then_to_its_page(visit):
    page = visit("/jobs/")
    page.context.clear_cookies()

    page.get_by_role("link", name="Metadata operations").click()

    expect(page).to_have_url(re.compile(r"/login/\?next=/jobs/%3Fsort"))
    page.get_by_label("User name").fill("sam")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(r"/jobs/\?sort"))


def test_no_page_is_wider_than_its_window(visit, heavy_job):
    segment = heavy_job.records.get().segment_id
    page = visit("/jobs/")

    for path in (
        "/jobs/",
        f"/jobs/{heavy_job.pk}/",
        "/ingest/",
        f"/ingest/files/{segment}/",
        "/ingest/coverage/",
        "/ingest/nids/",
        "/ingest/pending/",
        "/admin/site/cluster/",
        "/",
        "/trends/",
        "/users/",
        "/users/alice/",
        "/projects/",
        "/search/?q=3567126+alice",
        "/api/v1/docs/",
        "/styleguide/",
    ):
        page.set_viewport_size({"width": 390, "height": 900})
        page.goto(path)
        for width, theme in ((390, "light"), (390, "dark"), (1600, "dark"), (3840, "light")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme)

            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


@pytest.mark.parametrize("width", [1280, 390])
def test_labels_of_marks_and_gaps_do_not_overlap(visit, width):
    page = visit("/styleguide/", viewport={"width": width, "height": 800})
    chart = drawn(page, "lines")
    expect(chart.locator(".annotation")).to_have_count(3)

    top = chart.locator(".nsewdrag").bounding_box()["y"]
    labels = [label.bounding_box() for label in chart.locator(".annotation").all()]
    assert all(box["y"] + box["height"] <= top + 2 for box in labels)
    assert not any(
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and abs(one["y"] - other["y"]) < 10
        for one, other in combinations(labels, 2)
    )


def test_everything_is_readable_without_scripts(visit, heavy_job):
    page = visit(f"/jobs/{heavy_job.pk}/", java_script_enabled=False)

    page.get_by_text("Table", exact=True).first.click()
    expect(page.get_by_role("group", name="Opens and closes, table")).to_be_visible()
    page.get_by_role("link", name="Start-up").click()
    expect(page.get_by_label("From")).to_have_value("2017-07-05 12:00:00")
    page.goto("/jobs/?sort=-opens")
    expect(page.get_by_role("link", name="3567126")).to_be_visible()


def test_the_keyboard_reaches_the_content_first(visit):
    page = visit("/jobs/")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.locator("main")).to_be_focused()


def test_a_bar_of_a_population_leads_to_its_jobs(visit):
    page = visit("/jobs/?user=alice")
    page.get_by_role("link", name="Statistics").click()
    expect(page.get_by_role("group", name="Statistics: user: alice")).to_contain_text("Std. Dev.")
    expect(page.get_by_role("group", name="Other metrics: user: alice")).to_be_visible()
    plot = drawn(page, "opens").locator(".nsewdrag")
    box = plot.bounding_box()

    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 40)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60, steps=5)
    expect(page.locator("[data-plot='figure-opens'] .hovertext")).to_contain_text("n = 1 (100.0%)")
    plot.click()
    expect(page).to_have_url(re.compile(r"/jobs/\?user=alice&opens_from=\d+&opens_below=\d+$"))
    expect(page.locator(".found")).to_contain_text("1 job")


def test_a_population_is_saved_shared_and_compared(visit):
    page = visit("/populations/?user=alice")
    page.locator("summary", has_text="Save as").click()
    page.get_by_label("Name", exact=True).fill("Alice's jobs")
    page.get_by_label("Shared").check()
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page).to_have_url(re.compile(r"/populations/alices-jobs/$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Alice's jobs")
    page.get_by_label("Compare with").fill("/jobs/?nodes_min=1")
    page.get_by_role("button", name="Compare").click()
    legend = drawn(page, "opens").locator(".legend")
    expect(legend).to_contain_text("nodes at least: 1")


def test_the_overview_refreshes_only_while_it_is_visible(visit, logs, ingest):
    moments = [datetime.now(UTC) - timedelta(seconds=n) for n in (40, 20)]
    ingest("rpctrace", logs("t", "\n".join(rpc(at) for at in moments)), server="mds1")
    page = visit("/overview/")
    page.locator(DRAWN).first.wait_for()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    seen = """hidden => {
        Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
        document.querySelector("[data-live-status]").dataset.liveEvery = 0.1;
        document.dispatchEvent(new Event("visibilitychange"));
    }"""

    with page.expect_response(re.compile("/overview/rpcs/")):
        page.evaluate(seen, arg=False)
    expect(page.locator("[data-live-status]")).to_contain_text("updated")
    page.evaluate(seen, arg=True)
    page.wait_for_load_state("networkidle")
    requests.clear()
    page.wait_for_timeout(400)
    assert requests == []

    with page.expect_response(re.compile("/overview/rpcs/")):
        page.evaluate(seen, arg=False)
