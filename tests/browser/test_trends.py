"""Positions of bars, points and marks of trend charts in a browser."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from ioportal.core.charts.time_axis import Mark, Meaning
from ioportal.core.charts.timelines import Chart, Style
from ioportal.jobs.analysis.trends import Step, buckets
from ioportal.jobs.charts.trends import figure
from tests.browser import charts

pytestmark = [
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]

# Each range starts and ends inside a bucket and contains a clock change.
RANGES = {
    Step.HOUR: ("2017-03-25T22:20Z", "2017-03-26T03:40Z"),
    Step.DAY: ("2017-03-10T07:30Z", "2017-03-28T19:30Z"),
    Step.WEEK: ("2017-03-02T07:30Z", "2017-04-20T19:30Z"),
    Step.MONTH: ("2016-12-10T07:30Z", "2017-11-20T19:30Z"),
    Step.YEAR: ("2015-02-10T07:30Z", "2018-11-20T19:30Z"),
}
ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Europe/Berlin", "Australia/Lord_Howe"]
DRAWN = """figure => {
    document.getElementById("figure-lines").textContent = figure;
    document.dispatchEvent(new Event("themechange"));
    const plot = document.querySelector("[data-plot='figure-lines']");
    const { calcdata, _fullLayout: { xaxis, shapes } } = plot;
    return {
        bars: calcdata[0].map(bar => [bar.p0, bar.p1]),
        points: calcdata[1].map(point => point.x),
        mark: xaxis.d2c(shapes[0].x0),
        range: xaxis.range.map(end => xaxis.d2c(end)),
    };
}"""


@pytest.mark.long
def test_bars_points_and_marks_are_drawn_within_the_spans_of_their_buckets(visit):
    page = visit("/styleguide/")
    charts.drawn(page, "lines")

    for step, name in product(Step, ZONES):
        zone = ZoneInfo(name)
        start, end = map(datetime.fromisoformat, RANGES[step])
        cut = buckets(start, end, step, zone)
        marked = len(cut) // 2
        at = cut.edges[marked] + timedelta(minutes=1)  # an upgrade just after a bucket's begin
        drawn = page.evaluate(DRAWN, json.dumps(_both(cut, Mark(at, "", Meaning.BREAK))))
        # Hours use one UTC offset, so that none is drawn twice; longer steps use the time zone.
        clock = zone if step is not Step.HOUR else start.astimezone(zone).utcoffset()
        spans = [(_on(clock, a), _on(clock, b)) for a, b in pairwise(cut.edges)]

        case = f"{step} in {name}"
        for (left, right), (first, last), middle in zip(
            spans, drawn["bars"], drawn["points"], strict=True
        ):
            gap = 0.06 * (right - left)
            assert (first, last) == pytest.approx((left + gap, right - gap), abs=2), case
            assert middle == pytest.approx((left + right) / 2, abs=2), case
        assert spans[marked][0] < drawn["mark"] < spans[marked][1], case
        assert drawn["range"] == [spans[0][0], spans[-1][1]], case


def _both(cut, mark):
    """Return one figure with bars and a line of the same values."""
    frame = pl.DataFrame({"completed": [1] * len(cut)})
    labels = {"completed": "completed"}
    bars, line = (
        figure(Chart("x", "X", "jobs", "About.", style, labels), frame, cut, [mark])
        for style in (Style.STACK, Style.LINES)
    )
    return {"data": [*bars["data"], *line["data"]], "layout": bars["layout"]}


def _on(clock, moment):
    """Return a moment in local time, as milliseconds since 1970."""
    local = moment + clock if isinstance(clock, timedelta) else moment.astimezone(clock)
    return local.replace(tzinfo=UTC).timestamp() * 1_000
