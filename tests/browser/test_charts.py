"""Positions, hover texts and images of charts as drawn."""

import pytest
from playwright.sync_api import expect

pytestmark = [
    pytest.mark.long,
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]

OPENS, RPCS = "[data-plot='figure-opens-closes']", "[data-plot='figure-metadata']"
# The steps of a chart: their bounds in pixels, the height of its middle, and the bounds as text.
STEPS = """plot => {
    const [{ hovertext, x }] = plot.data;
    const { left, top, height } = plot.querySelector(".nsewdrag").getBoundingClientRect();
    const { xaxis } = plot._fullLayout;
    const at = number => left + xaxis.d2p(x[number]);
    return x.flatMap((_, number) => number % 3 ? []
        : [[at(number), at(number + 2), top + height / 2, hovertext[number]]]);
}"""

# The name and the hover text of a trace that a user named like a colour token.
NAMED_AS_COLOUR = """plot => {
    const script = document.getElementById(plot.dataset.plot);
    const figure = JSON.parse(script.textContent);
    Object.assign(figure.data[0], { name: "--help", hovertext: "--help" });
    script.textContent = JSON.stringify(figure);
    const { name, hovertext } = window.printedFigure(plot, 1000).data[0];
    return [name, hovertext];
}"""


@pytest.fixture
def charts(visit, heavy_job):
    page = visit(f"/jobs/{heavy_job.pk}/", viewport={"width": 1440, "height": 1000})
    for chart in (OPENS, RPCS):
        page.locator(f"{chart} .main-svg").first.wait_for()
    page.locator(f"{OPENS} .nsewdrag").scroll_into_view_if_needed()
    return page


def test_the_pointer_names_its_step_and_is_shown_in_other_charts(charts):
    steps = charts.locator(OPENS).evaluate(STEPS)
    wide = [step for step in steps if step[1] - step[0] > 40]
    assert len(wide) >= 2
    for left, right, y, text in wide[:2]:
        for x in (left + 6, (left + right) / 2, right - 6):
            charts.mouse.move(x, y - 5)
            charts.mouse.move(x, y)
            expect(charts.locator(f"{OPENS} .hoverlayer")).to_contain_text(text)

            line = charts.locator(f"{RPCS} > .crosshair").bounding_box()
            ours, theirs = (
                charts.locator(f"{chart} .nsewdrag").bounding_box() for chart in (OPENS, RPCS)
            )
            expected = theirs["x"] + (x - ours["x"]) * theirs["width"] / ours["width"]
            assert line["x"] == pytest.approx(expected, abs=1.5)
            assert (line["y"], line["height"]) == pytest.approx((theirs["y"], theirs["height"]))
    expect(charts.locator(f"{OPENS} > .crosshair")).to_be_hidden()


def test_no_text_of_a_chart_is_small(charts):
    sizes = charts.locator(".js-plotly-plot text").evaluate_all(
        "texts => texts.map(text => parseFloat(getComputedStyle(text).fontSize))"
    )

    assert min(sizes) >= 12


def test_an_image_has_source_and_time_in_its_caption(charts):
    chart = charts.locator("figure", has=charts.locator(OPENS))

    with charts.expect_download() as download:
        chart.get_by_role("button", name="SVG").click()
    svg = download.value.path().read_text()
    with charts.expect_download() as other:
        chart.get_by_role("button", name="PNG").click()

    assert download.value.suggested_filename == "opens-closes.svg"
    for text in ("Opens and closes", "(job_stats)", "2017-07-05", "Time (UTC)", "3567126"):
        assert text in svg
    assert other.value.path().read_bytes().startswith(b"\x89PNG")


def test_an_image_of_a_chart_not_drawn_yet(visit, heavy_job):
    page = visit()
    page.add_init_script("window.IntersectionObserver = class { observe() {} unobserve() {} };")
    page.goto(f"/jobs/{heavy_job.pk}/")
    last = page.locator("figure", has=page.locator("[data-plot]")).last
    assert last.locator(".js-plotly-plot").count() == 0

    with page.expect_download() as download:
        last.get_by_role("button", name="PNG").dispatch_event("click")

    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_hidden_name_stays_hidden_after_a_reload(charts):
    closes = charts.locator(f"{OPENS} .legend .traces").filter(has_text="closes")
    closes.locator(".legendtoggle").click()
    visible = f"""() => document.querySelector("{OPENS}").data
        .find(trace => trace.name === "closes").visible"""
    charts.wait_for_function(f"() => ({visible})() === 'legendonly'")

    charts.reload()

    charts.locator(f"{OPENS} .main-svg").first.wait_for()
    assert charts.evaluate(visible) == "legendonly"


def test_corrupt_choices_of_a_legend_are_ignored(charts):
    charts.evaluate("() => sessionStorage.setItem(`legends of ${location.pathname}`, '{')")

    charts.reload()

    charts.locator(f"{OPENS} .main-svg").first.wait_for()


def test_a_name_is_never_taken_for_a_colour(charts):
    names = charts.locator(OPENS).evaluate(NAMED_AS_COLOUR)

    assert names == ["--help", "--help"]


def test_histograms_are_two_by_two_on_wide_screens(visit):
    page = visit("/populations/", viewport={"width": 1200, "height": 900})
    figures = page.locator(".histograms > figure")
    figures.nth(3).wait_for()
    boxes = [figures.nth(number).bounding_box() for number in range(4)]

    assert boxes[0]["y"] == boxes[1]["y"] < boxes[2]["y"] == boxes[3]["y"]
