"""Hidden traces, zoom and colours persist when a chart is refreshed."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.charts import drawn
from tests.logs import rpc

pytestmark = [
    pytest.mark.long,
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]

# Colours by principal, of drawn traces and of swatches in tables.
DRAWN = """() => Object.fromEntries(
    document.querySelector("[data-plot^='figure-rpcs']").data
        .filter(trace => trace.visible !== "legendonly" && trace.legendgroup)
        .map(trace => [trace.legendgroup, trace.marker.color.replaceAll(" ", "")])
)"""
SWATCHES = """() => Object.fromEntries(
    [...document.querySelectorAll("[data-principal]")].map(
        swatch => [swatch.dataset.principal, getComputedStyle(swatch).fill.replaceAll(" ", "")]
    )
)"""
REFRESH = """() => {
    const status = document.querySelector("[data-live-status]");
    status.dataset.liveEvery = 3600;
    status.textContent = "";
    document.dispatchEvent(new Event("visibilitychange"));
}"""

SETTLED = "() => document.addEventListener('htmx:afterSettle', () => { window.settled = true; })"


@pytest.fixture
def send(logs, ingest):
    """Load a trace of some seconds ago, with the number of RPCs of each host."""

    def load(name, seconds_ago, **counts):
        begin = datetime.now(UTC) - timedelta(seconds=seconds_ago)
        nids = [f"{host.removeprefix('n')}@gni" for host, n in counts.items() for _ in range(n)]
        moments = [begin + timedelta(milliseconds=10 * number) for number in range(len(nids))]
        trace = [rpc(at, nid, job="") for at, nid in zip(moments, nids, strict=True)]
        ingest("rpctrace", logs(name, "\n".join(trace)), server="mds1")

    return load


def test_refreshes_keep_hidden_traces_and_colours(visit, send):
    send("first", 60, n1=30, n2=20, n3=10)
    page = visit("/overview/?by=job", color_scheme="light")
    page.locator("[data-plot^='figure-rpcs'] .main-svg").first.wait_for()
    first = page.evaluate(SWATCHES)
    assert set(first) == {"host n1", "host n2", "host n3"}
    assert len(set(first.values())) == 3
    assert page.evaluate(DRAWN) == first

    in_legend = page.locator("[data-plot^='figure-rpcs'] .legend .traces")
    in_legend.filter(has_text="host n2").locator(".legendtoggle").click()
    page.wait_for_function(f"() => !('host n2' in ({DRAWN})())")
    send("second", 30, n4=90, n3=60)  # now others are on top
    refresh(page)
    second = page.evaluate(SWATCHES)
    assert second.items() > first.items()
    assert len(set(second.values())) == 4
    assert set(page.evaluate(DRAWN)) == {"host n1", "host n3", "host n4"}

    page.get_by_role("button", name="Switch between light and dark").click()
    dark = page.evaluate(SWATCHES)
    assert not {*dark.values()} & {*second.values()}
    assert page.evaluate(DRAWN) == {name: dark[name] for name in ("host n1", "host n3", "host n4")}

    in_legend.filter(has_text="host n3").locator(".legendtoggle").dblclick()
    page.wait_for_function(f"() => Object.keys(({DRAWN})()).join() === 'host n3'")
    send("third", 5, n5=10)
    refresh(page)
    assert "host n5" in page.evaluate(SWATCHES)
    assert set(page.evaluate(DRAWN)) == {"host n3"}


def test_charts_stay_drawn_after_another_range_is_selected(visit, send):
    send("range", 5, n1=30)
    page = visit("/overview/")
    plot = page.locator("[data-plot^='figure-rpcs']")
    plot.locator(".main-svg").first.wait_for()
    page.evaluate(SETTLED)

    page.get_by_role("link", name="6h").click()

    page.wait_for_function("() => window.settled")
    plot.locator(".main-svg").first.wait_for()
    expect(plot).to_have_class(re.compile("js-plotly-plot"))


def test_switching_the_theme_keeps_the_zoom(visit):
    of_counters = "start=2017-07-05T08:00:00Z&end=2017-07-05T14:00:00Z"
    page = visit(f"/?{of_counters}", color_scheme="light")
    plot = drawn(page, "load").locator(".nsewdrag").bounding_box()
    middle = plot["y"] + plot["height"] / 2
    shown = "document.querySelector(\"[data-plot='figure-load']\").layout.xaxis.range.join()"
    whole = page.evaluate(shown)

    page.mouse.move(plot["x"] + plot["width"] * 0.6, middle)
    page.mouse.down()
    page.mouse.move(plot["x"] + plot["width"] * 0.9, middle, steps=4)
    page.mouse.move(plot["x"] + plot["width"] * 0.99, middle, steps=4)
    page.mouse.up()
    page.wait_for_url(lambda address: of_counters not in address)  # the page of the range
    drawn(page, "load")
    page.wait_for_function(f"() => {shown} !== '{whole}'")
    page.wait_for_load_state("networkidle")
    zoomed = page.evaluate(shown)
    page.get_by_role("button", name="Switch between light and dark").click()

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(shown) == zoomed


def refresh(page):
    with page.expect_response(re.compile("/overview/rpcs/")):
        page.evaluate(REFRESH)
    expect(page.locator("[data-live-status]")).to_contain_text("updated")
    page.wait_for_load_state("networkidle")
