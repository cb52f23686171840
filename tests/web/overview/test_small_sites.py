"""The overview of a site with little or no data."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain
from tests.logs import Run, at, job_stats, rpc, sacct
from tests.web.overview.exports import RANGE, top


def test_reads_before_and_after_the_range_cover_it(as_staff, site, logs, ingest, register):
    register('[[target]]\nname = "lake-MDT0000"\nfilesystem = "lake"\njob_cleanup_interval = 43200')
    for hour, opens in ((9, 1), (15, 21_601)):
        moment = at(f"{hour:02}:00")
        text = job_stats("lake-MDT0000", {"cp.0": {"open": opens}}, snapshot=moment)
        ingest("job_stats", logs(f"r{hour}", text), at=moment.isoformat())
    drain(rollups.roll_up)

    [process] = top(as_staff, "operations")["top"]

    assert process["principal"] == "process cp.0"
    assert process["mean_per_second"] == pytest.approx(1)


def test_polls_are_in_the_step_of_their_time(as_staff, site, logs, ingest):
    for second, opens in ((0, 1), (20, 121), (40, 241), (60, 361), (80, 361), (120, 361)):
        moment = at("12:00") + timedelta(seconds=second)
        text = job_stats("lake-MDT0000", {"cp.0": {"open": opens}}, snapshot=moment)
        ingest("job_stats", logs(f"r{second}", text), at=moment.isoformat())

    data = top(as_staff, "operations")

    assert data["bin_s"] == 60
    rates = [(row["start"], row["per_second"]) for row in data["rows"] if row["per_second"]]
    assert rates == [("2017-07-05T12:00:00+00:00", 6)]


def test_an_observed_range_without_operations_is_idle(as_staff, site, logs, ingest):
    for minute in (0, 10):
        text = job_stats("lake-MDT0000", {"77": {"open": 5}}, snapshot=at(f"12:{minute:02}"))
        ingest("job_stats", logs(f"r{minute}", text), at=at(f"12:{minute:02}").isoformat())

    data = top(as_staff, "operations")

    assert (data["observed_s"], data["attributed_s"], data["pending_s"]) == (600, 600, 0)
    page = as_staff.get(f"/overview/operations/?{RANGE}").content.decode()
    assert "No metadata operations in this range." in page


def test_own_jobs_do_not_hide_a_few_jobs_of_another_user(as_alice, site, logs, ingest):
    """Of 17 jobs 16 are alice's, so the rest is bob's alone."""
    runs = [Run(str(100 + n), nodes=f"n{n}") for n in range(1, 17)]
    ingest(
        "sacct",
        logs("j", sacct(*runs, Run("77", nodes="n20", user="bob", project="ENG1"))),
        cluster="anvil",
    )
    trace = [rpc(f"12:00:{n:02}", f"{n}@gni") for n in (*range(1, 17), 20)]
    ingest("rpctrace", logs("t", "\n".join(trace)), server="mds1")
    drain(rollups.roll_up)

    data = top(as_alice, "rpcs", "start=2017-07-05T12:00:00Z&end=2017-07-05T12:01:00Z")

    rates = {name: [] for name in ("your other jobs", "all others")}
    for row in data["rows"]:
        rates.get(row["principal"], []).append(row["per_second"])
    assert sum(rate > 0 for rate in rates["your other jobs"]) > 0
    assert set(rates["all others"]) == {None}
    assert {row["share"] for row in data["top"]} == {None}


def test_current_data_is_live(as_staff, site, logs, ingest):
    now = datetime.now(UTC)
    trace = "\n".join(rpc(now - timedelta(seconds=n), "1@gni") for n in (40, 20, 1))
    ingest("rpctrace", logs("t", trace), server="mds1")

    page = as_staff.get("/overview/").content.decode()

    assert 'data-live="/overview/rpcs/' in page
    assert "host n1" in page


def test_an_empty_overview_lists_the_first_steps(as_staff):
    page = as_staff.get("/overview/").content.decode()

    assert "manage.py register site.toml" in page
    assert "No data" in page


def test_an_empty_overview_shows_users_no_commands(as_alice):
    page = as_alice.get("/overview/").content.decode()

    assert "No data" in page
    assert "manage.py" not in page
