"""The overview: principals by name for staff; own jobs and sums over others for users."""

from datetime import datetime, timedelta
from unittest.mock import ANY

import pytest

from ioportal.ingest.models import DirtyDeltas, DirtyTrace, Segment
from ioportal.jobs.analysis import anonymity
from ioportal.site.models import Server
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain
from ioportal.web.overview import section
from tests.loading import ingest
from tests.logs import Run, at, job_stats, rpc, sacct
from tests.web.overview.exports import RANGE, top
from tests.web.reading import csv_of

BOBS = ("bob", "bobby", "robert")


@pytest.fixture(scope="module")
def busy_site(module_site, module_logs):
    """Eleven jobs of three users and one of alice run for an hour; mds1 is traced until 12:30.

    Each job sends one RPC per minute; alice's sends ten, and sixty in the last minute.
    """
    runs = [
        Run(str(100 + n), nodes=f"n{n}", user=BOBS[n % 3], project="ENG1") for n in range(1, 12)
    ]
    ingest("sacct", module_logs("j", sacct(*runs, Run("77", nodes="n20"))), cluster="anvil")
    trace = []
    for minute in range(30):
        moment = at("12:00") + timedelta(minutes=minute)
        trace += [rpc(moment + timedelta(seconds=n), f"{n}@gni") for n in range(1, 12)]
        hers = 60 if minute == 29 else 10
        trace += [
            rpc(moment + timedelta(seconds=20 + n / 2), "20@gni", us=(30, 90)) for n in range(hers)
        ]
    ingest("rpctrace", module_logs("t", "\n".join(trace)), server="mds1")
    reads = []
    for minute in (0, 10, 20, 30):
        entries = {
            "77": {"open": minute * minute * 60 + 1},
            "cp.0": {"open": minute * 60 + 1},
            **{str(100 + n): {"open": minute * 6 + 1} for n in range(1, 12)},
        }
        moment = at("12:00") + timedelta(minutes=minute)
        text = job_stats("lake-MDT0000", entries, snapshot=moment)
        reads.append(module_logs(f"r{minute}", text, read_at=moment))
    ingest("job_stats", *reads)
    drain(rollups.roll_up)


def test_the_busiest_principal_is_first_with_rates_and_share(as_staff, busy_site):
    data = top(as_staff, "rpcs")

    first, second = data["top"][:2]
    assert first == {
        "principal": "77 alice",
        "nodes": 1,
        "latest_per_second": ANY,
        "latest_per_second_and_node": first["latest_per_second"],
        "mean_per_second": pytest.approx(350 / data["observed_s"]),
        "share": pytest.approx(350 / 680),
    }
    assert first["latest_per_second"] > 10 * second["latest_per_second"]
    assert len(data["top"]) == 12


def test_charts_add_up_to_the_count_and_gaps_have_no_rows(as_staff, busy_site):
    data = top(as_staff, "rpcs")
    seconds = {
        row["start"]: (
            datetime.fromisoformat(row["end"]) - datetime.fromisoformat(row["start"])
        ).total_seconds()
        for row in data["rows"]
    }

    counted = sum(row["per_second"] * seconds[row["start"]] for row in data["rows"])
    assert counted == pytest.approx(680)
    assert max(row["end"] for row in data["rows"]) <= "2017-07-05T12:30:00"


def test_operations_are_rates_between_reads(as_staff, busy_site):
    data = top(as_staff, "operations")

    assert data["observed_s"] == 1_800
    by_name = {row["principal"]: row for row in data["top"]}
    assert by_name["77 alice"]["mean_per_second"] == pytest.approx(30)
    assert by_name["77 alice"]["latest_per_second"] == pytest.approx(50)  # 30,000 in ten minutes
    assert by_name["process cp.0"]["mean_per_second"] == pytest.approx(1)


def test_layers_of_the_chart_are_in_the_table(as_staff, busy_site, monkeypatch):
    monkeypatch.setattr(section, "_TABLE_ROWS", 2)
    data = top(as_staff, "rpcs")

    listed = [row["principal"] for row in data["top"]]
    assert len(listed) == 6
    assert {row["principal"] for row in data["rows"]} == {*listed, "all others"}


@pytest.fixture
def pend(busy_site, queries):
    """Make the traces and counter differences of an interval pending."""

    def make(start, end, **facts):
        if not facts:
            for table in ("iowindow", "iototal", "iotenminutes"):
                query = f"DELETE FROM telemetry_{table} WHERE start >= %s RETURNING 1"  # noqa: S608  (of these)
                queries(query, at(start))
        mds, span = Server.objects.get(name="mds1"), {"start": at(start), "end": at(end), **facts}
        DirtyTrace.objects.create(server=mds, **span)
        segment = Segment.objects.filter(targets__name="lake-MDT0000").latest("pk")
        DirtyDeltas.objects.create(segment=segment, filesystem=mds.filesystem, **span)

    return make


def test_pending_time_has_no_rates(as_staff, busy_site, pend):
    pend("12:20", "12:30")
    pend("12:05", "12:10", has_rows=True)  # its figures are shown until they are replaced

    rpcs, operations = top(as_staff, "rpcs"), top(as_staff, "operations")

    assert rpcs["observed_s"] == pytest.approx(1_788.5)
    assert rpcs["attributed_s"] == pytest.approx(1_200, abs=2)
    assert (rpcs["pending_s"], operations["pending_s"]) == (600, 600)
    assert rpcs["top"][0]["latest_per_second"] == pytest.approx(10 / 60, rel=0.2)
    assert operations["top"][0]["latest_per_second"] == pytest.approx(30)  # from 12:10 to 12:20
    for data in (rpcs, operations):
        of_bob = [row for row in data["rows"] if row["principal"].endswith(BOBS)]
        pending = [row for row in of_bob if row["per_second"] is None]
        assert {(row["start"][11:19], row["end"][11:19]) for row in pending} == {
            ("12:20:00", "12:30:00")
        }
        assert all(row["per_second"] > 0 for row in of_bob if "12:01" < row["start"][11:] < "12:19")
    page = as_staff.get(f"/overview/rpcs/?{RANGE}").content.decode()
    assert '"text": "attribution pending"' in page
    assert "pending attribution)" in page


@pytest.mark.parametrize("name", ["rpcs", "operations"])
def test_a_pending_range_is_not_idle(as_staff, busy_site, pend, name):
    pend("11:50", "13:00")

    data = top(as_staff, name)

    assert (data["attributed_s"], data["top"]) == (0, [])
    assert data["observed_s"] > 1_700
    assert {row["per_second"] for row in data["rows"]} == {None}
    page = as_staff.get(f"/overview/{name}/?{RANGE}").content.decode()
    assert "Attribution pending" in page
    assert "Not observed" not in page.partition('data-part="busiest')[2].partition("</div>")[0]


def test_jobs_are_grouped_by_user_and_project(as_staff, busy_site):
    by_user = top(as_staff, "rpcs", f"{RANGE}&by=user")["top"]
    by_project = top(as_staff, "rpcs", f"{RANGE}&by=project")["top"]

    nodes = {row["principal"]: row["nodes"] for row in by_user}
    assert nodes == {"alice": 1, "bob": 3, "bobby": 4, "robert": 4}
    assert [row["principal"] for row in by_project] == ["PHY12", "ENG1"]


@pytest.mark.parametrize("name", ["rpcs", "operations"])
def test_other_users_jobs_are_one_sum_from_ten_jobs_on(as_alice, busy_site, name):
    data = top(as_alice, name)

    assert [row["principal"] for row in data["top"]] == ["77 alice"]
    assert {row["principal"] for row in data["rows"]} == {"77 alice", "all others"}
    assert data["top"][0]["share"] is not None
    page = as_alice.get(f"/overview/{name}/?{RANGE}").content.decode()
    assert "bob" not in page
    assert "cp.0" not in page
    assert "all others" in page


@pytest.mark.parametrize("name", ["rpcs", "operations"])
def test_fewer_than_ten_other_jobs_are_null_and_not_zero(as_alice, busy_site, monkeypatch, name):
    monkeypatch.setattr(anonymity, "MIN_GROUP", 12)  # the site has eleven

    data = top(as_alice, name)
    table = csv_of(as_alice.get(f"/overview/{name}/?{RANGE}&format=csv"))

    assert [row["principal"] for row in data["top"]] == ["77 alice"]
    assert data["top"][0]["share"] is None
    rates = {row["per_second"] for row in data["rows"] if row["principal"] == "all others"}
    assert rates == {None}
    assert {row["per_second"] for row in table if row["principal"] == "all others"} == {""}
    assert "This range has no such group" in (
        as_alice.get(f"/overview/rpcs/?{RANGE}").content.decode()
    )


def test_sums_over_others_are_rounded_to_two_digits(as_alice, busy_site):
    """In ten minutes a process does 600 operations, and each of eleven jobs 60: 1,260."""
    data = top(as_alice, "operations")

    own, *_ = data["top"]
    by_step = {(row["start"], row["principal"]): row["per_second"] * 600 for row in data["rows"]}
    assert {round(rate) for (_, who), rate in by_step.items() if who == "all others"} == {1_300}
    assert own["share"] == pytest.approx(54_000 / (54_000 + 3 * 1_300))


@pytest.mark.parametrize(
    ("start", "end"), [("12:22", "12:24"), ("12:15", "12:25"), ("12:25", "12:35")]
)
def test_staff_and_users_see_shares_of_the_operations_in_the_range(
    client, alice, sam, busy_site, start, end
):
    """A process does one operation per second, and eleven jobs 1.1; users see 1,300 in 600 s."""
    query = f"start=2017-07-05T{start}:00Z&end=2017-07-05T{end}:00Z"

    for user, others in ((sam, 2.1), (alice, 1_300 / 600)):
        client.force_login(user)
        own, *_ = top(client, "operations", query)["top"]
        total = own["mean_per_second"] / own["share"]
        assert total - own["mean_per_second"] == pytest.approx(others)


def test_coarse_steps_read_roll_ups_with_equal_shares(as_staff, busy_site, queries):
    fine = top(as_staff, "rpcs")
    queries("DELETE FROM telemetry_attributedrpc RETURNING 1")
    rolled = top(as_staff, "rpcs", "start=2017-07-05T00:00:00Z&end=2017-07-06T00:00:00Z")

    assert (fine["bin_s"], rolled["bin_s"]) == (60, 600)
    assert [(row["principal"], row["share"]) for row in rolled["top"]] == [
        (row["principal"], pytest.approx(row["share"])) for row in fine["top"]
    ]


def test_without_current_data_the_last_hour_of_data_is_shown(as_staff, busy_site):
    page = as_staff.get("/overview/").content.decode()

    assert "No data since" in page
    assert "data-live=" not in page
    assert "77 alice" in page


def test_an_unchanged_section_is_not_sent_again(as_staff, busy_site):
    address = f"/overview/rpcs/?{RANGE}"
    etag = as_staff.get(address).headers["ETag"]

    assert as_staff.get(address, headers={"If-None-Match": etag}).status_code == 304


def test_the_number_of_queries_does_not_grow_with_the_jobs(
    as_staff, busy_site, django_assert_num_queries
):
    as_staff.get(f"/overview/rpcs/?{RANGE}")

    with django_assert_num_queries(22):
        as_staff.get(f"/overview/rpcs/?{RANGE}")
    with django_assert_num_queries(25):
        as_staff.get(f"/overview/operations/?{RANGE}")


def test_invalid_ranges_are_refused(as_staff, busy_site):
    assert as_staff.get("/overview/rpcs/?start=x&format=json").status_code == 400
    assert "is not a time" in as_staff.get("/overview/?start=x").content.decode()
    assert as_staff.get("/overview/nothing/").status_code == 404
