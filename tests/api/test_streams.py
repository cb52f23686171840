"""Streams: batches in any order, and overlaps with files and other streams."""

import random
from itertools import permutations
from uuid import uuid4

import pytest
from django.core.management import CommandError
from django.db import transaction

from collectors import tables
from ioportal.ingest.models import DirtyTrace
from ioportal.jobs.models import Job
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain
from tests import contents
from tests.batches import batch as new_batch
from tests.batches import delta, job_row, traced, window
from tests.logs import Run, Timed, at, job_stats, rpc, sacct

pytestmark = pytest.mark.usefixtures("sources")

STREAM = [
    traced(1, "12:00", "12:00:10", window("12:00:01", count=3)),
    traced(2, "12:00:10", "12:00:20", window("12:00:12", job="77"), window("12:00:19")),
    traced(
        3, "12:00:20", "12:00:29", window("12:00:21"), window("12:00:09.5")
    ),  # the second row is late
    traced(4, "12:40", "12:41", window("12:40:30", "9@gni")),
]
OBSERVED = [(at("12:00"), at("12:00:29")), (at("12:40"), at("12:41"))]


@pytest.fixture
def covered(queries):
    return lambda: queries('SELECT start, "end" FROM telemetry_coverage ORDER BY 1')


@pytest.fixture
def stream_twice(deliver, token):
    """Deliver batches in a given and in reverse order; return the resulting tables."""
    token("mds1-trace")

    def run(batches, *steps):
        with transaction.atomic():
            answers = [deliver(batch)[0] for batch in [*batches, *reversed(batches)]]
            for step in steps:
                step()
            stored = contents.everything()
            transaction.set_rollback(True)
        assert set(answers) == {202}
        return stored

    return run


@pytest.mark.long
def test_the_order_of_batches_does_not_change_the_tables(stream_twice, attribute, reconcile):
    expected = stream_twice(STREAM, attribute, reconcile)
    orders = list(permutations(STREAM))

    for order in random.Random(2017).sample(orders, 6):  # noqa: S311  (an order, not a secret)
        assert stream_twice(order, attribute) == expected
    assert len(expected["telemetry_rpcwindow"]) == 6


@pytest.mark.long
def test_attribution_between_deliveries_does_not_change_the_tables(
    stream_twice, deliver, attribute
):
    expected = stream_twice(STREAM, attribute)

    for batch in STREAM:
        deliver(batch)
        attribute()

    assert contents.everything() == expected


def test_coverage_of_a_stream_is_joined(deliver, covered):
    for batch in STREAM:
        deliver(batch)

    assert covered() == OBSERVED


def test_rows_of_coverage_are_split_by_day(deliver, covered):
    deliver(traced(1, "22:00", "23:00"))
    deliver(traced(2, "23:00", "25:00"))

    assert covered() == [(at("22:00"), at("24:00")), (at("24:00"), at("25:00"))]


def test_a_batch_marks_only_its_own_windows_dirty(deliver, attribute):
    deliver(STREAM[0])
    attribute()
    deliver(STREAM[1])

    [dirty] = DirtyTrace.objects.all()
    assert (dirty.start, dirty.end) == (at("12:00:10"), at("12:00:20"))


def test_a_batch_that_overlaps_a_file_is_refused(deliver, logs, ingest):
    ingest("rpctrace", logs("t", rpc("11:59:50"), rpc("12:00:05")), server="mds1")

    status, answer = deliver(STREAM[0])

    assert (status, answer["code"]) == (422, "refused")
    assert "overlaps" in answer["detail"]
    assert "The stored records are from a file" in answer["detail"]


@pytest.mark.parametrize("replace", [{}, {"replace": True}])
def test_a_file_that_overlaps_a_stream_is_refused(deliver, logs, ingest, queries, replace):
    deliver(STREAM[0])

    with pytest.raises(CommandError, match=r"overlaps mds1-trace batch 1 .* agent"):
        ingest("rpctrace", logs("t", rpc("12:00:05")), server="mds1", **replace)

    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(3,)]


def test_a_new_stream_that_overlaps_an_old_stream_is_refused(deliver):
    deliver(STREAM[0])
    again = {"stream": str(uuid4())}

    answers = [
        deliver(traced(1, "12:00", "12:00:10", window("12:00:06"), **again))[0],
        deliver(traced(1, "12:00:15", "12:00:20", window("12:00:16"), **again))[0],
    ]

    assert answers == [422, 202]


def test_jobs_in_batches_give_the_same_tables_as_in_files(
    deliver, logs, ingest, attribute, reconcile
):
    runs = [Run("77").running(), Run("77", end="12:30"), Run("78", nodes="n2")]
    with transaction.atomic():
        ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
        expected = contents.rows("jobs_job", "jobs_allocation", "jobs_jobstatistics")
        transaction.set_rollback(True)
    rows = [job_row(number, run) for number, run in enumerate(runs, start=1)]

    answers = [
        deliver(new_batch(2, "jobs", rows[1:]), "anvil-jobs")[0],
        deliver(new_batch(1, "jobs", rows[:1]), "anvil-jobs")[0],
        deliver(new_batch(2, "jobs", rows[1:]), "anvil-jobs")[0],
    ]
    attribute()

    assert answers == [202, 202, 202]
    assert contents.rows("jobs_job", "jobs_allocation", "jobs_jobstatistics") == expected
    assert reconcile() == "2 segments reconcile."


def _launch(start, end):
    """The record of a launch of job 77."""
    row = job_row(1, Run("77.0", nodes="n9"))
    return row | {"started_at": start and at(start), "ended_at": end and at(end)}


@pytest.mark.parametrize("order", list(permutations([1, 2, 3])))
def test_the_latest_batch_decides_in_any_order_of_delivery(deliver, queries, order):
    runs = {sequence: Run("77", nodes=f"n{sequence}") for sequence in order}

    for sequence in order:
        row = job_row(4 - sequence, runs[sequence])
        assert deliver(new_batch(sequence, "jobs", [row]), "anvil-jobs")[0] == 202

    assert queries("SELECT nodes FROM jobs_job") == [("n3",)]


@pytest.mark.parametrize(("source", "end"), [("anvil-jobs", "14:00"), ("anvil-queue", "13:00")])
def test_no_token_takes_over_ajob_row(deliver, scrape, source, end):
    deliver(new_batch(1, "jobs", [job_row(1, Run("77"))]), "anvil-jobs")
    assert scrape()["ioportal_owner_conflicts"] == 0

    taken = job_row(1, Run("77", user="mallory", project="EVIL", end="14:00"))
    status, _ = deliver(new_batch(2, "jobs", [taken]), source)

    job = Job.objects.get()
    assert (status, job.owner, job.project, job.ended_at) == (202, "alice", "PHY12", at(end))
    assert scrape()["ioportal_owner_conflicts"] == 1


def _ended(deliver, logs, ingest, by):
    """Report the end of job 77 by a source, or by a file."""
    if by == "file":
        ingest("sacct", logs("s", sacct(Run("77"))), cluster="anvil")
    else:
        deliver(new_batch(1, "jobs", [job_row(1, Run("77").running())]), "anvil-queue")
        deliver(new_batch(1, "jobs", [job_row(1, Run("77"))]), by)


@pytest.mark.parametrize(
    ("taken", "differences"),
    [
        (Run("77", project="EVIL", start="12:30", end="14:00"), "started at, ended at, project"),
        (Run("77", end="13:01", nodes="n[5-6]"), "ended at, nodes"),
        (Run("77", submit="11:01", nodes="n5"), "submitted at, nodes"),
        (Run("77.9", start="12:30", nodes="n5"), "launches"),
    ],
)
@pytest.mark.parametrize("by", ["anvil-jobs", "file"])
def test_an_ended_job_is_changed_only_by_its_own_source(
    deliver, logs, ingest, queries, taken, differences, by
):
    _ended(deliver, logs, ingest, by)
    before = contents.rows("jobs_job", "jobs_allocation", "jobs_launch")

    status, _ = deliver(new_batch(2, "jobs", [job_row(1, taken)]), "anvil-queue")

    assert status == 202
    assert contents.rows("jobs_job", "jobs_allocation", "jobs_launch") == before
    conflicts = queries("SELECT reported_owner, differences FROM ingest_ownerconflict")
    assert conflicts == [("alice", differences)]


def test_an_ended_job_is_repaired_by_its_own_source_and_by_files(deliver, logs, ingest, queries):
    _ended(deliver, logs, ingest, "anvil-jobs")
    projects = []
    for number, project in enumerate(["one", "two", "three"], start=2):
        if project == "two":
            ingest(
                "sacct", logs("f", sacct(Run("77", project="two", end="13:30"))), cluster="anvil"
            )
        else:
            row = job_row(1, Run("77", project=project, end=f"13:{number}0"))
            deliver(new_batch(number, "jobs", [row]), "anvil-jobs")
        projects += queries("SELECT project FROM jobs_job")

    assert projects == [("one",), ("two",), ("three",)]
    assert not queries("SELECT 1 FROM ingest_ownerconflict")


def test_a_queued_run_does_not_start_during_an_ended_one(deliver, queries):
    deliver(new_batch(1, "jobs", [job_row(1, Run("77"))]), "anvil-jobs")
    taken = job_row(1, Run("77", submit="11:01", start="12:30", user="mallory"))
    queued = taken | {"started_at": None, "ended_at": None, "state": "pending"}

    for sequence, row in enumerate([queued, taken], start=1):
        assert deliver(new_batch(sequence, "jobs", [row]), "anvil-queue")[0] == 202

    started = "SELECT owner FROM jobs_job WHERE started_at IS NOT NULL"
    assert queries(started) == [("alice",)]
    assert queries("SELECT reported_owner FROM ingest_ownerconflict") == [("mallory",)]


@pytest.mark.parametrize(
    "taken",
    [
        _launch("08:00", "13:00"),
        _launch(None, "08:00"),
        _launch(None, None),
        _launch("08:00", None),
        # A run that begins at the end; launches of the minutes before it may be of either clock.
        job_row(1, Run("77", submit="11:01", nodes="", user="mallory", start="13:00", end="13:01")),
    ],
)
def test_a_launch_of_an_ended_job_stays(deliver, queries, taken):
    rows = [job_row(1, Run("77", nodes="")), job_row(2, Run("77.0", start="12:56", nodes="n[1-2]"))]
    assert deliver(new_batch(1, "jobs", rows), "anvil-jobs")[0] == 202
    before = contents.rows("jobs_launch", "jobs_allocation")

    assert deliver(new_batch(1, "jobs", [taken]), "anvil-queue")[0] == 202

    assert contents.rows("jobs_launch", "jobs_allocation") == before
    expected = [("launches",)] if taken["launch"] else []
    assert queries("SELECT differences FROM ingest_ownerconflict") == expected


def test_a_job_has_one_conflict_per_source(deliver, queries):
    deliver(new_batch(1, "jobs", [job_row(1, Run("77"))]), "anvil-jobs")
    for sequence in (1, 2):
        rows = [
            job_row(line, Run("77", submit=f"11:0{line}", user=f"mallory{sequence}{line}"))
            for line in (1, 2)
        ]
        assert deliver(new_batch(sequence, "jobs", rows), "anvil-queue")[0] == 202

    assert queries("SELECT reported_owner FROM ingest_ownerconflict") == [("mallory22",)]


@pytest.mark.parametrize(
    "early", [{"ended_at": at("12:01")}, {"started_at": at("12:30"), "ended_at": at("14:00")}]
)
@pytest.mark.parametrize("by", ["anvil-jobs", "file"])
def test_accounting_replaces_an_end_in_the_queue(deliver, logs, ingest, queries, early, by):
    end = job_row(1, Run("77", nodes="n9")) | {"exit_status": None, "cpu_s": None} | early
    assert deliver(new_batch(1, "jobs", [end]), "anvil-queue")[0] == 202

    if by == "file":
        ingest("sacct", logs("s", sacct(Run("77"))), cluster="anvil")
    else:
        deliver(new_batch(1, "jobs", [job_row(1, Run("77"))]), by)
    deliver(new_batch(2, "jobs", [end | {"ended_at": at("15:00")}]), "anvil-queue")

    facts = "SELECT started_at, ended_at, nodes, exit_status, cpu_s FROM jobs_job"
    assert queries(facts) == [(at("12:00"), at("13:00"), "n1", 0, 3600.0)]
    conflicts = "SELECT s.name FROM ingest_ownerconflict c JOIN site_source s ON s.id = c.source_id"
    assert queries(conflicts) == [("anvil-queue",)]


def test_sources_that_agree_are_no_conflict(deliver, queries):
    for source in ("anvil-queue", "anvil-jobs", "anvil-queue"):
        for sequence, run in enumerate([Run("77").running(), Run("77"), Run("77")], start=1):
            deliver(new_batch(sequence, "jobs", [job_row(sequence, run)]), source)

    assert queries("SELECT state FROM jobs_job") == [("completed",)]
    assert not queries("SELECT 1 FROM ingest_ownerconflict")


def test_jobs_of_another_cluster_are_refused(deliver):
    status, answer = deliver(
        new_batch(1, "jobs", [job_row(1, Run("77")) | {"cluster": "birch"}]), "anvil-jobs"
    )

    assert (status, answer["code"]) == (422, "refused")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"ended_at": at("11:59")}, "values"),
        ({"state": "dreaming"}, "values"),
        ({"state": "running\x00"}, "values"),
        ({"submitted_at": None}, "refused"),
        ({"nodes": "n[1-"}, "refused"),
        ({"nodes": "n[1-999999999]"}, "refused"),
        ({"nodes": "n[1-100000]"}, "refused"),
    ],
)
def test_invalid_records_are_refused(deliver, changes, code):
    status, answer = deliver(new_batch(1, "jobs", [job_row(1, Run("77")) | changes]), "anvil-jobs")

    assert (status, answer["code"]) == (422, code)


def test_a_batch_of_too_many_hosts_is_refused(deliver, queries):
    rows = [
        job_row(line, Run(str(line), nodes="n[1-180000]", node_count=180_000)) for line in (1, 2, 3)
    ]

    status, answer = deliver(new_batch(1, "jobs", rows), "anvil-jobs")

    assert (status, answer["code"]) == (422, "refused")
    assert "its records name 540,000 hosts, more than 500,000" in answer["detail"]
    assert not queries("SELECT 1 FROM jobs_job")


def test_text_of_records_may_contain_any_characters(deliver, queries):
    unusual = {"name": "a\x00b" * 500, "user": "\U0001f41f", "queue": "'; DROP TABLE jobs_job; --"}

    assert deliver(new_batch(1, "jobs", [job_row(1, Run("77")) | unusual]), "anvil-jobs")[0] == 202
    assert queries("SELECT left(name, 3), owner FROM jobs_job") == [("a\ufffdb", "\U0001f41f")]


# -- counter differences ----------------------------------------------------------------------


def polled(sequence, start, end, *rows, target="lake-MDT0000", table="job_deltas", **changes):
    """Return a batch of one poll."""
    return new_batch(sequence, table, rows, [(target, start, end)], **changes)


@pytest.fixture
def opens(queries, attribute):
    """Return the opens by kind of principal, job and basis."""

    def read():
        attribute()
        return queries(
            """
            SELECT w.kind, coalesce(j.batch_id, ''), w.basis, sum(open)
            FROM telemetry_iowindow w LEFT JOIN jobs_job j ON j.id = w.job_id
            GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
            """
        )

    return read


JOB, PROCESS, PENDING = 1, 2, 4
DIFFERENCE, NEW_ENTRY, TOTAL = 1, 2, 5


def test_differences_are_attributed_again_when_the_job_record_arrives(
    deliver, logs, ingest, opens, reconcile
):
    deliver(
        polled(1, "12:00", "12:00", delta("12:00", "12:00", "77", basis="total", open=5)),
        "mds1-jobs",
    )
    deliver(
        polled(
            2, "12:00", "12:01",
            delta("12:00", "12:01", "77", open=7),
            delta("12:00", "12:01", "cp.0", basis="new_entry", open=2),
        ),
        "mds1-jobs",
    )  # fmt: skip
    assert opens() == [
        (PROCESS, "", NEW_ENTRY, 2), (PENDING, "", DIFFERENCE, 7), (PENDING, "", TOTAL, 5)
    ]  # fmt: skip

    ingest("sacct", logs("s", sacct(Run("77"))), cluster="anvil")

    assert opens() == [
        (JOB, "77", DIFFERENCE, 7), (JOB, "77", TOTAL, 5), (PROCESS, "", NEW_ENTRY, 2)
    ]  # fmt: skip
    assert reconcile() == "3 segments reconcile."


def test_an_entry_missed_by_an_earlier_poll_is_a_total(deliver, opens):
    row = delta("12:00", "12:01", "cp.0", basis="total", open=5)

    status, _ = deliver(polled(1, "12:00", "12:01", row), "mds1-jobs")

    assert status == 202
    assert opens() == [(PROCESS, "", TOTAL, 5)]


@pytest.mark.long
def test_job_statistics_are_computed_from_polls(deliver, logs, ingest, attribute, refresh, queries):
    ingest("sacct", logs("s", sacct(Run("77", end="12:30"))), cluster="anvil")
    for minute in range(31):
        start, end = f"12:{max(0, minute - 1):02}", f"12:{minute:02}"
        rows = [delta(start, end, "77", open=10)] if minute else []
        totals = [delta(start, end, open=20)] if minute else []
        deliver(polled(minute + 1, start, end, *rows), "mds1-jobs")
        deliver(polled(minute + 1, start, end, *totals, table="target_deltas"), "mds1-totals")
    attribute()
    refresh()

    assert queries(
        "SELECT opens, quality, covered_share, metadata_rate, largest_target_share "
        "FROM jobs_jobstatistics"
    ) == [(300, "good", 1.0, pytest.approx(300 / 1800), 0.5)]


def test_a_refusal_names_all_unregistered_targets(deliver):
    rows = [delta("12:00", "12:01", "77", target=f"lake-MDT000{n}", open=1) for n in range(4, 7)]

    status, answer = deliver(polled(1, "12:00", "12:01", *rows, target="lake-MDT0009"), "mds1-jobs")

    assert status == 422
    assert answer["detail"].startswith(
        "lake: 4 targets are not registered: lake-MDT[0004-0006], lake-MDT0009. Add them"
    )


def test_osts_are_combined_and_each_is_covered(deliver, queries, attribute, reconcile):
    rows = [delta("12:00", "12:01", "77", target="", write=3, write_bytes=900)]
    assert deliver(polled(1, "12:00", "12:01", *rows, target=""), "oss1-jobs")[0] == 202
    attribute()

    assert queries("SELECT target_id, write_bytes FROM telemetry_iowindow") == [(0, 900)]
    assert queries(
        'SELECT t.name, c.start, c."end" FROM telemetry_coverage c '
        "JOIN site_target t ON t.id = c.source_id ORDER BY 1"
    ) == [(f"lake-OST000{n}", at("12:00"), at("12:01")) for n in range(2)]
    assert reconcile()


@pytest.mark.parametrize("clock", ["12:00:30", "12:01", "13:00"])
def test_files_from_after_the_first_poll_of_an_agent_are_refused(deliver, logs, ingest, clock):
    deliver(polled(1, "12:00", "12:01", delta("12:00", "12:01", "77", open=7)), "mds1-jobs")

    with pytest.raises(CommandError, match="overlaps mds1-jobs batch 1"):
        read(ingest, logs, clock)


def test_files_from_before_the_first_poll_of_an_agent_are_loaded(
    deliver, logs, ingest, opens, reconcile
):
    read(ingest, logs, "11:50", opens=3)
    deliver(polled(1, "12:00", "12:01", delta("12:00", "12:01", "77", open=7)), "mds1-jobs")
    read(ingest, logs, "12:00", opens=5)

    assert opens() == [(PENDING, "", DIFFERENCE, 9), (PENDING, "", TOTAL, 3)]
    assert deliver(polled(9, "11:58", "12:00"), "mds1-jobs")[0] == 422
    assert reconcile()


def first_poll(*rows, target="lake-MDT0000"):
    totals = [row | {"basis": "total"} for row in rows]
    return polled(1, "12:00", "12:00", *totals, target=target)


FIRST_POLL = first_poll(
    delta("12:00", "12:00", "77", open=12, close=5, open_us=600),
    delta("12:00", "12:00", "78", open=4),
    delta("12:00", "12:00", "79", open=8),
    delta("12:00", "12:00", "80", open=3),
)
NEXT_POLL = polled(2, "12:00", "12:01", delta("12:00", "12:01", "77", open=7))
FILES = {  # clock: opens by job id
    "11:40": {"77": Timed(6, 200), "79": 9},
    "11:50": {"77": Timed(10, 450), "79": 9, "80": 3},
}


@pytest.fixture
def hand_over(deliver, token, logs, ingest, attribute, reconcile, queries):
    """Load files and deliver batches in a given order; return the opens of each window."""
    token("mds1-jobs")

    def run(steps, *, attribute_each):
        with transaction.atomic():
            for step in steps:
                if isinstance(step, str):
                    entries = {job: {"open": opens} for job, opens in FILES[step].items()}
                    text = job_stats("lake-MDT0000", entries, snapshot=step)
                    ingest("job_stats", logs(step, text), at=at(step).isoformat())
                else:
                    assert deliver(step, "mds1-jobs")[0] == 202
                if attribute_each:
                    attribute()
                    drain(rollups.roll_up)
            attribute()
            drain(rollups.roll_up)
            reconcile()
            windows = queries(
                "SELECT to_char(w.\"end\", 'HH24:MI'), s.text, w.basis, w.open, w.open_us, w.close "
                "FROM telemetry_iowindow w JOIN site_sourcejobid s ON s.id = w.source_job_id "
                'ORDER BY w."end", s.text'
            )
            rolled_up = queries("SELECT sum(metadata_operations) FROM telemetry_iototal")
            transaction.set_rollback(True)
        assert rolled_up == [(sum((row[3] or 0) + (row[5] or 0) for row in windows),)]
        return windows

    return run


@pytest.mark.long
@pytest.mark.parametrize("attribute_each", [False, True])
def test_the_first_poll_of_an_agent_counts_no_operation_of_a_file_again(hand_over, attribute_each):
    steps = ["11:40", "11:50", FIRST_POLL, NEXT_POLL]

    for order in (steps, steps[::-1], [steps[n] for n in (1, 2, 0, 3)]):
        assert hand_over(order, attribute_each=attribute_each) == [
            ("11:40", "77", TOTAL, 6, 200, None),
            ("11:40", "79", TOTAL, 9, None, None),
            ("11:50", "77", DIFFERENCE, 4, 250, None),
            ("11:50", "80", NEW_ENTRY, 3, None, None),
            ("12:00", "77", TOTAL, 2, 150, None),
            ("12:00", "78", TOTAL, 4, None, None),  # no file has it
            ("12:00", "79", TOTAL, 8, None, None),  # created again since the last file
            ("12:01", "77", DIFFERENCE, 7, None, None),
        ], order


def test_the_reads_of_all_osts_are_subtracted_from_the_first_poll(
    deliver, logs, ingest, attribute, reconcile, queries
):
    def write(clock, number, **sizes):
        entries = {job: {"write_bytes": (size // 100, size)} for job, size in sizes.items()}
        text = job_stats(f"lake-OST000{number}", entries, snapshot=clock)
        ingest("job_stats", logs(f"{clock}-{number}", text), at=at(clock).isoformat())

    write("11:40", 0, cp=100)
    write("11:50", 1, cp=400, mv=900)
    deliver(
        first_poll(
            delta("12:00", "12:00", "cp", target="", write=15, write_bytes=1_500),
            delta("12:00", "12:00", "mv", target="", write=2, write_bytes=200),
            target="",
        ),
        "oss1-jobs",
    )
    attribute()
    first_polls = (
        "SELECT s.text, w.write, w.write_bytes FROM telemetry_iowindow w "
        "JOIN site_sourcejobid s ON s.id = w.source_job_id "
        "WHERE w.\"end\" = '2017-07-05 12:00Z' ORDER BY 1"
    )
    assert queries(first_polls) == [("cp", 10, 1_000), ("mv", 2, 200)]

    write("11:55", 0, cp=700)

    assert queries(first_polls) == [("cp", 4, 400), ("mv", 2, 200)]
    assert reconcile() == "4 segments reconcile."


def test_a_first_poll_after_polls_of_another_stream_is_a_total(
    deliver, logs, ingest, opens, reconcile
):
    read(ingest, logs, "11:50", opens=3)
    deliver(FIRST_POLL, "mds1-jobs")
    deliver(NEXT_POLL, "mds1-jobs")
    row = delta("12:02", "12:02", "77", basis="total", open=20)
    deliver(polled(1, "12:02", "12:02", row, stream=str(uuid4())), "mds1-jobs")

    assert opens() == [(PENDING, "", DIFFERENCE, 7), (PENDING, "", TOTAL, 3 + 9 + 15 + 20)]
    assert reconcile() == "4 segments reconcile."


def test_a_replaced_file_changes_the_first_poll(deliver, logs, ingest, opens, reconcile):
    read(ingest, logs, "11:50", opens=12)
    deliver(first_poll(delta("12:00", "12:00", "77", open=12)), "mds1-jobs")
    assert opens() == [(PENDING, "", TOTAL, 12)]

    text = job_stats("lake-MDT0000", {"77": {"open": 9}}, snapshot="11:49")
    ingest("job_stats", logs("b", text), at=at("11:50").isoformat(), replace=True)

    assert opens() == [(PENDING, "", TOTAL, 9 + 3)]
    assert reconcile() == "2 segments reconcile."


def read(ingest, logs, clock, opens=1):
    text = job_stats("lake-MDT0000", {"77": {"open": opens}}, snapshot=clock)
    ingest("job_stats", logs(clock, text), at=at(clock).isoformat())


@pytest.mark.parametrize("target", ["pond-MDT0000", "lake-OST0000", "nowhere", ""])
def test_targets_of_another_filesystem_or_kind_are_refused(deliver, target):
    source = "mds1-jobs"  # its server has no OST
    batch = polled(1, "12:00", "12:01", delta("12:00", "12:01", "7", target, open=1), target=target)

    status, answer = deliver(batch, source)

    assert (status, answer["code"]) == (422, "refused")


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (delta("12:01", "12:00", "7"), "end"),
        (delta("12:00", "12:01", "7", basis="guess"), "basis"),
        (delta("12:00", "12:00", "7"), "basis"),
        (delta("12:00", "12:01", "7", open=-1), "open"),
    ],
)
def test_invalid_differences_are_refused(deliver, row, column):
    status, answer = deliver(polled(1, "12:00", "12:01", row), "mds1-jobs")

    assert (status, answer["column"]) == (422, column)


def test_a_new_registration_repeats_attribution(deliver, register, opens):
    deliver(polled(1, "12:00", "12:01", delta("12:00", "12:01", "j77", open=7)), "mds1-jobs")
    assert opens() == [(PROCESS, "", DIFFERENCE, 7)]

    register('[[filesystem]]\nname = "lake"\njob_id_pattern = "j(?P<batch_id>[0-9]+)"')

    assert opens() == [(PENDING, "", DIFFERENCE, 7)]


def test_request_histories_are_stored_once_and_not_attributed(
    deliver, attribute, queries, reconcile
):
    first = {key: window("12:00:03", count=4)[key] for key in tables.REQUEST_WINDOWS.columns}
    history = new_batch(1, "request_windows", [first], [("", "12:00:00", "12:00:10")])

    answers = [deliver(history, "mds1-history") for _ in range(2)]
    attribute()

    assert [answer["already"] for _, answer in answers] == [False, True]
    assert queries("SELECT sum(count)::int FROM telemetry_requestwindow") == [(4,)]
    assert queries("SELECT count(*) FROM telemetry_attributedrpc") == [(0,)]
    assert reconcile() == "1 segments reconcile."
