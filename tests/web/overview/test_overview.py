"""The overview: who is on top now, for staff by name, for others only what they may know."""

from datetime import UTC, datetime, timedelta
from unittest.mock import ANY

import pytest

from ioportal.ingest.models import Segment, TouchedDeltas, TouchedTrace
from ioportal.site.models import Server
from ioportal.stages import drain
from ioportal.telemetry import rollups
from ioportal.web.overview import section
from tests.logs import Run, at, job_stats, rpc, sacct
from tests.web.reading import csv_of

RANGE = "start=2017-07-05T12:00:00Z&end=2017-07-05T13:00:00Z"


@pytest.fixture
def busy_site(site, logs, ingest, alice):
    """From 12:00 to 13:00 eleven jobs of bob's and one of alice's ran; mds1 was traced half of it.

    Every job sent an RPC a minute, alice's ten; in the last minute hers sent sixty.
    """
    runs = [Run(str(100 + n), nodes=f"n{n}", user="bob", project="ENG1") for n in range(1, 12)]
    ingest("sacct", logs("j", sacct(*runs, Run("77", nodes="n20"))), cluster="anvil")
    trace = []
    for minute in range(30):
        moment = at("12:00") + timedelta(minutes=minute)
        trace += [rpc(moment + timedelta(seconds=n), f"{n}@gni") for n in range(1, 12)]
        hers = 60 if minute == 29 else 10
        trace += [
            rpc(moment + timedelta(seconds=20 + n / 2), "20@gni", us=(30, 90)) for n in range(hers)
        ]
    ingest("rpctrace", logs("t", "\n".join(trace)), server="mds1")
    for minute in (0, 10, 20, 30):
        entries = {
            "77": {"open": minute * minute * 60 + 1},
            "cp.0": {"open": minute * 60 + 1},
            **{str(100 + n): {"open": minute * 6 + 1} for n in range(1, 12)},
        }
        moment = at("12:00") + timedelta(minutes=minute)
        text = job_stats("lake-MDT0000", entries, snapshot=moment)
        ingest("job_stats", logs(f"r{minute}", text), at=moment.isoformat())
    drain(rollups.roll_up)


def top(client, name, query=RANGE):
    return client.get(f"/overview/{name}/?{query}&format=json").json()


def test_the_busiest_now_is_on_top_with_rates_and_share(as_staff, busy_site):
    shown = top(as_staff, "rpcs")

    first, second = shown["top"][:2]
    assert first == {
        "principal": "77 alice",
        "nodes": 1,
        "newest_per_second": ANY,
        "newest_per_second_and_node": first["newest_per_second"],
        "mean_per_second": pytest.approx(350 / shown["observed_s"]),
        "share": pytest.approx(350 / 680),
    }
    assert first["newest_per_second"] > 10 * second["newest_per_second"]
    assert len(shown["top"]) == 12


def test_charts_add_up_to_what_was_counted_and_gaps_have_no_rows(as_staff, busy_site):
    shown = top(as_staff, "rpcs")
    seconds = {
        row["start"]: (
            datetime.fromisoformat(row["end"]) - datetime.fromisoformat(row["start"])
        ).total_seconds()
        for row in shown["rows"]
    }

    counted = sum(row["per_second"] * seconds[row["start"]] for row in shown["rows"])
    assert counted == pytest.approx(680)
    assert max(row["end"] for row in shown["rows"]) <= "2017-07-05T12:30:00"


def test_operations_are_told_between_reads(as_staff, busy_site):
    shown = top(as_staff, "operations")

    assert shown["observed_s"] == 1_800
    by_name = {row["principal"]: row for row in shown["top"]}
    assert by_name["77 alice"]["mean_per_second"] == pytest.approx(30)
    assert by_name["77 alice"]["newest_per_second"] == pytest.approx(50)  # 30,000 in ten minutes
    assert by_name["process cp.0"]["mean_per_second"] == pytest.approx(1)


def test_reads_that_lie_on_both_sides_of_the_range_tell_of_it(
    as_staff, site, logs, ingest, register
):
    register('[[target]]\nname = "lake-MDT0000"\nfilesystem = "lake"\njob_cleanup_interval = 43200')
    for hour, opens in ((9, 1), (15, 21_601)):
        moment = at(f"{hour:02}:00")
        text = job_stats("lake-MDT0000", {"cp.0": {"open": opens}}, snapshot=moment)
        ingest("job_stats", logs(f"r{hour}", text), at=moment.isoformat())
    drain(rollups.roll_up)

    [process] = top(as_staff, "operations")["top"]

    assert process["principal"] == "process cp.0"
    assert process["mean_per_second"] == pytest.approx(1)


def test_whom_the_chart_names_is_in_the_table_though_others_are_busier_now(
    as_staff, busy_site, monkeypatch
):
    monkeypatch.setattr(section, "_LISTED", 2)
    shown = top(as_staff, "rpcs")

    listed = [row["principal"] for row in shown["top"]]
    assert len(listed) == 6
    assert {row["principal"] for row in shown["rows"]} == {*listed, "all others"}


@pytest.fixture
def pend(site, queries):
    """Let traces and differences of a time be pending: batches are stored before that."""

    def make(start, end, **facts):
        if not facts:
            for table in ("iowindow", "iototal", "iotenminutes"):
                query = f"DELETE FROM telemetry_{table} WHERE start >= %s RETURNING 1"  # noqa: S608  (of these)
                queries(query, at(start))
        mds, span = Server.objects.get(name="mds1"), {"start": at(start), "end": at(end), **facts}
        TouchedTrace.objects.create(server=mds, **span)
        segment = Segment.objects.filter(targets__name="lake-MDT0000").latest("pk")
        TouchedDeltas.objects.create(segment=segment, filesystem=mds.filesystem, **span)

    return make


def test_pending_time_has_no_rates_and_is_not_zero(as_staff, busy_site, pend):
    pend("12:20", "12:30")
    pend("12:05", "12:10", again=True)  # its figures are there, and will be replaced

    rpcs, operations = top(as_staff, "rpcs"), top(as_staff, "operations")

    assert rpcs["observed_s"] == pytest.approx(1_788.5)
    assert rpcs["attributed_s"] == pytest.approx(1_200, abs=2)
    assert (rpcs["pending_s"], operations["pending_s"]) == (600, 600)
    assert rpcs["top"][0]["newest_per_second"] == pytest.approx(10 / 60, rel=0.2)
    assert operations["top"][0]["newest_per_second"] == pytest.approx(30)  # from 12:10 to 12:20
    for shown in (rpcs, operations):
        of_bob = [row for row in shown["rows"] if row["principal"].endswith("bob")]
        pending = [row for row in of_bob if row["per_second"] is None]
        assert {(row["start"][11:19], row["end"][11:19]) for row in pending} == {
            ("12:20:00", "12:30:00")
        }
        assert all(row["per_second"] > 0 for row in of_bob if "12:01" < row["start"][11:] < "12:19")
    page = as_staff.get(f"/overview/rpcs/?{RANGE}").content.decode()
    assert '"text": "attribution pending"' in page
    assert "pending attribution)" in page


@pytest.mark.parametrize("name", ["rpcs", "operations"])
def test_a_range_that_is_all_pending_is_not_called_idle(as_staff, busy_site, pend, name):
    pend("11:50", "13:00")

    shown = top(as_staff, name)

    assert (shown["attributed_s"], shown["top"]) == (0, [])
    assert shown["observed_s"] > 1_700
    assert {row["per_second"] for row in shown["rows"]} == {None}
    page = as_staff.get(f"/overview/{name}/?{RANGE}").content.decode()
    assert "Attribution pending" in page
    assert "Not observed" not in page.partition('data-part="top')[2].partition("<figure")[0]


def test_observed_time_without_any_requests_is_idle(as_staff, site, logs, ingest):
    for minute in (0, 10):
        text = job_stats("lake-MDT0000", {"77": {"open": 5}}, snapshot=at(f"12:{minute:02}"))
        ingest("job_stats", logs(f"r{minute}", text), at=at(f"12:{minute:02}").isoformat())

    shown = top(as_staff, "operations")

    assert (shown["observed_s"], shown["attributed_s"], shown["pending_s"]) == (600, 600, 0)
    page = as_staff.get(f"/overview/operations/?{RANGE}").content.decode()
    assert "No metadata operations in this range." in page


def test_jobs_can_be_told_apart_by_user_and_project(as_staff, busy_site):
    by_user = top(as_staff, "rpcs", f"{RANGE}&by=user")["top"]
    by_project = top(as_staff, "rpcs", f"{RANGE}&by=project")["top"]

    assert [(row["principal"], row["nodes"]) for row in by_user] == [("alice", 1), ("bob", 11)]
    assert [row["principal"] for row in by_project] == ["PHY12", "ENG1"]


@pytest.mark.parametrize("name", ["rpcs", "operations"])
def test_others_are_told_of_together_from_ten_jobs_on(as_alice, busy_site, name):
    shown = top(as_alice, name)

    assert [row["principal"] for row in shown["top"]] == ["77 alice"]
    assert {row["principal"] for row in shown["rows"]} == {"77 alice", "all others"}
    assert shown["top"][0]["share"] is not None
    page = as_alice.get(f"/overview/{name}/?{RANGE}").content.decode()
    assert "bob" not in page
    assert "cp.0" not in page
    assert "all others" in page


@pytest.mark.parametrize("name", ["rpcs", "operations"])
def test_fewer_than_ten_jobs_of_others_are_null_and_not_zero(
    as_alice, busy_site, monkeypatch, name
):
    monkeypatch.setattr(section, "_LEAST_JOBS", 12)  # there are eleven

    shown = top(as_alice, name)
    table = csv_of(as_alice.get(f"/overview/{name}/?{RANGE}&format=csv"))

    assert [row["principal"] for row in shown["top"]] == ["77 alice"]
    assert shown["top"][0]["share"] is None
    rates = {row["per_second"] for row in shown["rows"] if row["principal"] == "all others"}
    assert rates == {None}
    assert {row["per_second"] for row in table if row["principal"] == "all others"} == {""}
    assert "Others are told of from ten jobs on" in (
        as_alice.get(f"/overview/rpcs/?{RANGE}").content.decode()
    )


def test_the_jobs_of_one_person_do_not_hide_the_few_of_another(as_alice, site, logs, ingest):
    """Of 17 jobs 16 are alice's, so whatever is left besides hers is bob's."""
    runs = [Run(str(100 + n), nodes=f"n{n}") for n in range(1, 17)]
    ingest(
        "sacct",
        logs("j", sacct(*runs, Run("77", nodes="n20", user="bob", project="ENG1"))),
        cluster="anvil",
    )
    trace = [rpc(f"12:00:{n:02}", f"{n}@gni") for n in (*range(1, 17), 20)]
    ingest("rpctrace", logs("t", "\n".join(trace)), server="mds1")
    drain(rollups.roll_up)

    shown = top(as_alice, "rpcs", "start=2017-07-05T12:00:00Z&end=2017-07-05T12:01:00Z")

    rates = {name: [] for name in ("your other jobs", "all others")}
    for row in shown["rows"]:
        rates.get(row["principal"], []).append(row["per_second"])
    assert sum(rate > 0 for rate in rates["your other jobs"]) > 0
    assert set(rates["all others"]) == {None}
    assert {row["share"] for row in shown["top"]} == {None}


def test_what_others_did_together_is_told_in_two_digits(as_alice, busy_site):
    """In ten minutes a process did 600 operations, and each of eleven jobs 60: 1,260."""
    shown = top(as_alice, "operations")

    own, *_ = shown["top"]
    by_step = {(row["start"], row["principal"]): row["per_second"] * 600 for row in shown["rows"]}
    assert {round(rate) for (_, who), rate in by_step.items() if who == "all others"} == {1_300}
    assert own["share"] == pytest.approx(54_000 / (54_000 + 3 * 1_300))


def test_coarse_steps_read_roll_ups_and_say_the_same(as_staff, busy_site, queries):
    fine = top(as_staff, "rpcs")
    queries("DELETE FROM telemetry_chargedrpc RETURNING 1")
    rolled = top(as_staff, "rpcs", "start=2017-07-05T00:00:00Z&end=2017-07-06T00:00:00Z")

    assert (fine["bin_s"], rolled["bin_s"]) == (60, 600)
    assert [(row["principal"], row["share"]) for row in rolled["top"]] == [
        (row["principal"], pytest.approx(row["share"])) for row in fine["top"]
    ]


def test_without_newer_data_the_last_hour_of_data_is_shown(as_staff, busy_site):
    page = as_staff.get("/overview/").content.decode()

    assert "Nothing newer than" in page
    assert "data-live=" not in page
    assert "77 alice" in page


def test_what_did_not_change_is_not_sent_again(as_staff, busy_site):
    address = f"/overview/rpcs/?{RANGE}"
    etag = as_staff.get(address).headers["ETag"]

    assert as_staff.get(address, headers={"If-None-Match": etag}).status_code == 304


def test_data_of_now_are_live(as_staff, site, logs, ingest):
    now = datetime.now(UTC)
    trace = "\n".join(rpc(now - timedelta(seconds=n), "1@gni") for n in (40, 20, 1))
    ingest("rpctrace", logs("t", trace), server="mds1")

    page = as_staff.get("/overview/").content.decode()

    assert 'data-live="/overview/rpcs/' in page
    assert "host n1" in page


def test_an_empty_overview_teaches(as_staff):
    page = as_staff.get("/overview/").content.decode()

    assert "manage.py register site.toml" in page
    assert "Nothing was observed yet" in page


def test_an_empty_overview_asks_nobody_to_feed_what_only_staff_can(as_alice):
    page = as_alice.get("/overview/").content.decode()

    assert "Nothing was observed yet" in page
    assert "manage.py" not in page


def test_the_number_of_queries_does_not_grow_with_the_jobs(
    as_staff, busy_site, django_assert_num_queries
):
    as_staff.get(f"/overview/rpcs/?{RANGE}")

    with django_assert_num_queries(21):
        as_staff.get(f"/overview/rpcs/?{RANGE}")
    with django_assert_num_queries(23):
        as_staff.get(f"/overview/operations/?{RANGE}")


def test_ranges_that_make_no_sense_are_refused(as_staff, busy_site):
    assert as_staff.get("/overview/rpcs/?start=x&format=json").status_code == 400
    assert "is not a time" in as_staff.get("/overview/?start=x").content.decode()
    assert as_staff.get("/overview/nothing/").status_code == 404
