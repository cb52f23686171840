"""Timelines of a PanDA job."""

from tests.logs import at
from tests.web import rows


def test_timelines_in_the_form_of_the_plots_of_panda(get, heavy_job):
    rows.put_inside(heavy_job, 11, started_at=at("12:00"), ended_at=at("12:30"))
    plots = get("panda/jobs/11/plots/").json()
    series = get("panda/jobs/11/series/").json()["series"]

    assert plots["error"] == ""
    plot = plots["plotsDict"]["metadata"]
    assert plot["details"] == {
        "title": "Metadata operations by kind", "xlabel": "Wall time, min", "ylabel": "ops/s",
    }  # fmt: skip
    (axis, *minutes), (kind, *values), *_ = plot["data"]
    assert axis == "x"
    assert minutes == sorted(minutes)
    assert all(0 <= minute <= 30 for minute in minutes)
    (plain,) = [chart for chart in series if chart["name"] == "metadata"]
    assert [row[kind] for row in plain["rows"]] == values
    assert get("panda/jobs/11/plots/", user="charlie").status_code == 404
    assert get("panda/jobs/404/series/").status_code == 404
