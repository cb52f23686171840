"""Demand by second: the same from a file and from an agent, with its trace, and by principal."""

from itertools import pairwise

import polars as pl
import pytest
from django.db import transaction

from ioportal.ingest import stream_discards
from ioportal.ingest.attribution import rpcs, seconds
from ioportal.ingest.models import Segment, Stream
from ioportal.load.impact import demand
from ioportal.site.models import Server
from ioportal.telemetry.models import AttributedSecond, Principal
from tests import batches, contents
from tests.logs import Run, at, rpc, sacct
from tests.storms import STORM, storm

pytestmark = pytest.mark.usefixtures("sources")

SECONDS = batches.TABLES["rpc_seconds"]


@pytest.fixture
def jobs(logs, ingest):
    """Load the jobs of the storm."""
    runs = [
        Run("77", nodes="n[3-4]", node_count=2),
        Run("78", nodes="n2"),
        Run("79", nodes="n5"),
    ]
    ingest("sacct", logs("jobs", sacct(*runs)), cluster="anvil")


@pytest.fixture
def by_job(queries):
    """Return the demand by principal, with names in place of the keys of jobs and processes."""

    def read(start="11:00", end="13:00"):
        names = queries(
            "SELECT concat('1:', id), batch_id FROM jobs_job "
            "UNION ALL SELECT concat('2:', id), text FROM site_sourcejobid"
        )
        rows = demand.seconds(Server.objects.get(name="mds1").pk, at(start), at(end))
        by_name = pl.col("principal").replace(dict(names))
        return rows.drop("service").with_columns(by_name).sort(pl.all())

    return read


def parts(text, number=8):
    """Divide a text into parts of whole lines."""
    lines = text.splitlines(keepends=True)
    ends = [part * len(lines) // number for part in range(number + 1)]
    return ["".join(lines[start:end]) for start, end in pairwise(ends)]


def stored(queries):
    """Return the rows of seconds by names, added up over segments."""
    return queries(
        "SELECT second, start, j.text, n.text, s.name, opcode, sum(count)::int, "
        "sum(total_us_sum), sum(service_us_sum), max(nids) FROM telemetry_rpcsecond r "
        "JOIN site_service s ON s.id = service_id LEFT JOIN site_nid n ON n.id = nid_id "
        "LEFT JOIN site_sourcejobid j ON j.id = source_job_id "
        "GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6"
    )


def test_a_file_and_an_agent_give_the_same_demand(
    jobs, logs, ingest, attribution, queries, by_job, follow
):
    text = f"{storm()}\n"
    with transaction.atomic():
        ingest("rpctrace", logs("trace", text), server="mds1")
        from_file = stored(queries), by_job().rows()
        transaction.set_rollback(True)

    follow(*parts(text))
    attribution()

    assert (stored(queries), by_job().rows()) == from_file
    # One a second from 12:01:00 to 12:02:32 (the last of the storm ended ten seconds before), and
    # seven of each second of the storm.
    assert sum(row[6] for row in from_file[0]) == 93 + 20 * 7


def test_demand_belongs_to_principals_and_expires_with_its_segment(
    jobs, logs, ingest, queries, by_job, reconcile
):
    trace = logs("trace", storm())
    ingest("rpctrace", trace, server="mds1")

    of_storm = (
        by_job(*STORM).group_by("principal").agg(pl.sum("requests", "total_us"), pl.max("clients"))
    )
    # The node of job 79 sends the id of job 77.
    assert sorted(of_storm.select("principal", "requests", "clients").rows()) == sorted(
        [("77", 80, 2), ("78", 40, 1), ("79", 20, 1), ("cp.0", 20, 1)]
    )
    before = contents.everything()
    ingest("rpctrace", trace, server="mds1")
    assert contents.everything() == before

    longer = "\n".join([storm(), rpc("12:08", "2@gni")])
    ingest("rpctrace", logs("longer", longer), "--replace", server="mds1")
    assert len(Segment.objects.filter(format="rpctrace")) == 1
    assert (
        by_job(*STORM)
        .group_by("principal")
        .agg(pl.sum("requests", "total_us"), pl.max("clients"))
        .sort("principal")
        .rows()
        == of_storm.sort("principal").rows()
    )
    assert reconcile()


def test_a_discarded_stream_takes_its_demand_along(jobs, follow, attribution, queries, by_job):
    follow(*parts(f"{storm()}\n"))
    attribution()
    assert by_job().height

    stream_discards.discard(Stream.objects.get(), "sam", "a test")
    while stream_discards.delete_next(3):
        pass
    attribution()

    assert queries("SELECT count(*) FROM telemetry_rpcsecond") == [(0,)]
    assert AttributedSecond.objects.count() == by_job().height == 0


def test_late_accounting_attributes_demand_again(logs, ingest, by_job):
    ingest("rpctrace", logs("trace", storm()), server="mds1")
    pending = by_job(*STORM).filter(pl.col("principal") == f"{Principal.PENDING.value}:0")
    assert pending["requests"].sum() == 100  # of all that claim to be 77

    ingest("sacct", logs("jobs", sacct(Run("77", nodes="n[3-5]", node_count=3))), cluster="anvil")

    requests = by_job(*STORM).filter(pl.col("principal") == "77")["requests"].sum()
    assert requests == 100


def test_senders_without_a_name_are_divided_among_the_others():
    window, second = at("12:00"), at("12:00:03")
    operation = {"start": window, "service_id": 1, "opcode": 101}
    rows = pl.DataFrame(
        [
            {**operation, "second": second, "source_job_id": 5, "nid_id": 0, "count": 40}
            | {"total_us": 4_000, "nids": 4},
            {**operation, "second": second, "source_job_id": 0, "nid_id": 0, "count": 10}
            | {"total_us": 2_000, "nids": 8},
            {**operation, "second": second, "source_job_id": 0, "nid_id": 9, "count": 1}
            | {"total_us": 50, "nids": 1},
        ],
        schema=seconds.COLUMNS,
    )
    senders = pl.DataFrame(
        [
            # Named; half of it is in other seconds.
            {"source_job_id": 5, "nid_id": 0, "principal_id": 50, "timed": 80, "nids": 4},
            {"source_job_id": 0, "nid_id": 7, "principal_id": 70, "timed": 40, "nids": 1},
            {"source_job_id": 0, "nid_id": 8, "principal_id": 70, "timed": 80, "nids": 1},
        ],
    ).with_columns(**{name: pl.lit(value) for name, value in operation.items()}, kind=1)
    senders = senders.select(pl.col(name).cast(kind) for name, kind in rpcs.SENDERS.items())

    divided = seconds.by_principal(rows, senders).sort("kind", "principal_id")

    assert divided.select("kind", "principal_id", "requests", "total_us", "clients").rows() == [
        (1, 50, 42.5, 4_500, 8.0),
        (1, 70, 7.5, 1_500, 4.0),
        (Principal.UNATTRIBUTED, 0, 1, 50, 1),
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"second": at("12:00:03.5")}, "is not a whole second"),
        ({"second": at("12:00:10")}, "is after the window's end"),
        ({"second": at("11:56:59")}, "is over 180 s before start"),
        ({"start": at("12:00:01")}, "is not a multiple of 10 s"),
        ({"nid": "1@gni"}, "must be empty if there is a job"),
        ({"count": 2**62}, "is more than 1,099,511,627,776"),
    ],
)
def test_impossible_seconds_are_refused(deliver, changes, reason):
    row = {"second": at("12:00:03"), "start": at("12:00"), "job": "77", "nid": "", "service": "mdt"}
    row |= {"opcode": 101, "count": 1, "total_us_sum": 9, "service_us_sum": 5, "nids": 1}
    windows = batches.traced(1, "12:00", "12:00:10", batches.window("12:00:03"))

    status, answer = deliver(windows, seconds=batches.arrow("rpc_seconds", [row | changes]))

    assert status == 422
    assert reason in answer["detail"]


def test_seconds_need_windows_of_a_trace(deliver):
    content = batches.arrow("rpc_seconds", SECONDS.empty())
    changed = batches.batch(1, "job_deltas", [batches.delta("12:00", "12:01", "77", open=1)])

    for batch, source in (
        (batches.traced(1, "12:00", "12:01"), "mds1-trace"),
        (changed, "mds1-jobs"),
    ):
        status, answer = deliver(batch, source, seconds=content)
        assert (status, answer["code"]) == (422, "parts")


def test_a_batch_with_other_seconds_is_a_conflict(deliver):
    windows = batches.traced(1, "12:00", "12:00:10", batches.window("12:00:03"))
    assert deliver(windows)[0] == 202

    status, answer = deliver(windows, seconds=batches.arrow("rpc_seconds", SECONDS.empty()))

    assert (status, answer["code"]) == (409, "conflict")
