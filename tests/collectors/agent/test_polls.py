"""Polled commands: increments of counters, and new records of exports."""

from datetime import UTC, datetime, timedelta
from io import BytesIO
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from collectors.agent.polling import counters
from collectors.agent.polling.counters import CounterReader
from collectors.agent.polling.exports import ExportReader
from collectors.agent.polling.snapshots import SnapshotReader
from collectors.format import Origin
from collectors.formats import BY_NAME
from collectors.parsed import SourceUnavailable
from collectors.tables import TIMES
from tests.logs import Run, Timed, exports, job_stats, md_stats, sacct

MDT, OST, OTHER_OST = "lake-MDT0000", "lake-OST0000", "lake-OST0001"


class Polled:
    """A command with given output, polled by an agent that restarts before each poll."""

    def __init__(self, folder, new_reader):
        self.output = folder / "output"
        self.new_reader = new_reader
        self.checkpoint = {}

    def poll(self, text):
        """Poll, commit, and return the batch."""
        reading = self.poll_and_crash(text)
        self.checkpoint = reading.checkpoint
        [batch] = reading.batches
        return batch

    def poll_and_crash(self, text):
        self.output.write_text(text)
        [reading] = self.new_reader(("cat", str(self.output))).read(self.checkpoint)
        return reading


@pytest.fixture
def jobs(tmp_path):
    kind = counters.job_counters(idle=timedelta(minutes=10))
    return Polled(tmp_path, lambda command: CounterReader(tmp_path, command, 10, kind))


@pytest.fixture
def targets(tmp_path):
    kind = counters.target_counters()
    return Polled(tmp_path, lambda command: CounterReader(tmp_path, command, 10, kind))


@pytest.fixture
def clients(tmp_path):
    kind = counters.export_counters()
    return Polled(tmp_path, lambda command: CounterReader(tmp_path, command, 10, kind))


@pytest.fixture
def accounting(tmp_path):
    def new_reader(command):
        return ExportReader(
            tmp_path, command, BY_NAME["sacct"], Origin(), timeout_s=10, look_back_s=3600
        )

    return Polled(tmp_path, new_reader)


def timed(target, **counters):
    """Return job_stats of job 1 from numbers and times of operations."""
    return job_stats(target, {"1": {name: Timed(*both) for name, both in counters.items()}})


def values(batch, *columns):
    return batch.rows.select(*columns).sort(columns).rows()


def test_a_poll_ships_increments_of_jobs(jobs):
    first = jobs.poll(job_stats(MDT, {"1": {"open": 100, "close": 90}}))
    second = jobs.poll(job_stats(MDT, {"1": {"open": 130, "close": 90}, "2": {"open": 7}}))

    assert values(first, "job", "basis", "open", "close") == [("1", "total", 100, 90)]
    assert values(second, "job", "basis", "open") == [
        ("1", "difference", 30),
        ("2", "new_entry", 7),
    ]
    [covered] = second.coverage
    assert covered.target == MDT
    assert (covered.start, covered.end) == second.rows.select("start", "end").row(0)
    assert covered.start == first.coverage[0].end


def test_a_poll_without_changes_covers_its_interval(jobs):
    jobs.poll(job_stats(MDT, {"1": {"open": 100}}))
    second = jobs.poll(job_stats(MDT, {"1": {"open": 100}}))

    assert second.rows.is_empty()
    assert [covered.target for covered in second.coverage] == [MDT]
    assert second.account.lines == second.account.accepted


@pytest.mark.parametrize("since", [7, 0])
def test_cleared_counters_are_shipped_as_a_reset(jobs, since):
    used_last = datetime.now(UTC)
    jobs.poll(job_stats(MDT, {"1": {"open": 100}}, snapshot=used_last))
    second = jobs.poll(job_stats(MDT, {"1": {"open": since}}, snapshot=used_last))

    assert values(second, "job", "basis", "open") == [("1", "reset", since)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"x": 10}, {"77": 2130}, [("77", "reset", 2130), ("x", "reset", None)]),
        ({"x": 10, "77": 5}, {"x": 3, "77": 12}, [("77", "reset", 7), ("x", "reset", 3)]),
        (
            {"x": 10, "y": 1, "77": 5},
            {"x": 3, "y": 2, "77": 12},
            [("77", "difference", 7), ("x", "reset", 3), ("y", "difference", 1)],
        ),
    ],
)
def test_a_restart_of_the_target_marks_all_its_entries(jobs, before, after, expected):
    used_last = datetime.now(UTC)

    def poll(opens):
        entries = {job: {"open": number} for job, number in opens.items()}
        return jobs.poll(job_stats(MDT, entries, snapshot=used_last, start=""))

    poll(before)

    assert values(poll(after), "job", "basis", "open") == expected


def test_osts_are_added_up_and_covered_individually(jobs):
    jobs.poll(job_stats(OST, {"1": {"punch": 1}}) + job_stats(OTHER_OST, {"1": {"punch": 5}}))
    second = jobs.poll(
        job_stats(OST, {"1": {"punch": 3}}) + job_stats(OTHER_OST, {"1": {"punch": 9}})
    )

    assert values(second, "target", "job", "basis", "punch") == [("", "1", "difference", 6)]
    assert [covered.target for covered in second.coverage] == [OST, OTHER_OST]


def test_times_of_operations_are_shipped_as_increments(jobs):
    polls = [
        timed(MDT, open=(100, 4_000), mkdir=(0, 0)),
        timed(MDT, open=(130, 5_500), mkdir=(2, 300)),
        timed(MDT, open=(130, 5_500), mkdir=(5, 900)),
    ]
    _, *following = [jobs.poll(text) for text in polls]

    assert [values(batch, "open", "open_us", "mkdir", "mkdir_us") for batch in following] == [
        [(30, 1_500, 2, 300)],
        [(0, None, 3, 600)],
    ]


def test_times_of_an_ost_without_times_are_unknown(jobs):
    def read(punches):
        return timed(OST, punch=(punches, 50 * punches)) + job_stats(
            OTHER_OST, {"1": {"punch": punches, "sync": 1}}
        )

    jobs.poll(read(1))
    second = jobs.poll(read(4))

    assert values(second, "target", "punch", "punch_us") == [("", 6, None)]


def test_a_state_of_an_earlier_version_has_no_times(jobs, tmp_path):
    jobs.poll(timed(MDT, open=(100, 4_000)))
    path = tmp_path / jobs.checkpoint["frame"]
    frame = pl.read_ipc(BytesIO(path.read_bytes()))
    frame.drop(TIMES).write_ipc(path)

    second, third = (jobs.poll(timed(MDT, open=(n, 40 * n))) for n in (130, 150))

    assert values(second, "open", "open_us") == [(30, None)]
    assert values(third, "open", "open_us") == [(20, 800)]


def test_increments_of_a_lost_poll_are_in_the_next_one(jobs):
    jobs.poll(job_stats(MDT, {"1": {"open": 100}}))
    jobs.poll_and_crash(job_stats(MDT, {"1": {"open": 130}}))
    third = jobs.poll(job_stats(MDT, {"1": {"open": 140}}))

    assert values(third, "job", "basis", "open") == [("1", "difference", 40)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "no counters", id="no output"),
        pytest.param(
            job_stats(MDT, {"1": {"open": 1}}).partition("\n")[2], "without -n", id="no names"
        ),
        pytest.param(
            job_stats(OST, {"1": {"punch": 1}}) + job_stats("pond-OST0000", {"1": {"punch": 1}}),
            "OSTs of lake and pond",
            id="two filesystems",
        ),
    ],
)
def test_an_invalid_poll_is_rejected(jobs, text, reason):
    with pytest.raises(SourceUnavailable, match=reason):
        jobs.poll(text)


def test_a_failed_command_is_reported(jobs, tmp_path):
    with pytest.raises(SourceUnavailable, match=r"exited with status 1: .*No such file"):
        list(jobs.new_reader(("cat", str(tmp_path / "nothing"))).read({}))


def test_increments_of_targets(targets):
    polls = [{"open": 50}, {"open": 60, "mkdir": 3}, {"mkdir": 4}, {"open": 61}, {"open": 2}]
    batches = [targets.poll(md_stats(MDT, totals)) for totals in polls]

    assert [values(batch, "basis", "open", "mkdir") for batch in batches] == [
        [("total", 50, None)],
        [("difference", 10, 3)],
        [("difference", 0, 1)],  # without a line of `open`, 60 is assumed
        [("difference", 1, 0)],
        [("reset", 2, None)],
    ]


def test_the_first_poll_of_a_target_has_all_counters(targets):
    whole = md_stats(MDT, {"open": 28500, "mkdir": 7})
    damaged = whole.replace("7 samples [reqs]", "7 samp")

    with pytest.raises(SourceUnavailable, match="no counters"):
        targets.poll(damaged)
    assert values(targets.poll(whole), "basis", "open", "mkdir") == [("total", 28500, 7)]


def test_a_client_with_unreadable_lines_begins_with_the_next_poll(clients):
    whole = exports(MDT, {"1@gni": {"open": 5}, "2@gni": {"open": 28500, "mkdir": 7}})
    polls = [whole.replace("7 samples [reqs]", "7 samp"), whole, whole.replace("28500", "28600")]
    first, second, third = (
        values(clients.poll(text), "nid", "basis", "metadata_operations") for text in polls
    )

    assert first == [("1@gni", "total", 5)]
    assert second == [("2@gni", "total", 28507)]
    assert third == [("2@gni", "difference", 100)]


def test_increments_of_clients(clients):
    polls = [
        exports(MDT, {"1@gni": {"open": 50}, "2@gni": {"statfs": 1}}),
        exports(
            MDT, {"1@gni": {"open": 60, "rename": 2, "samedir_rename": 2}, "3@gni": {"open": 4}}
        ),
        exports(MDT, {"1@gni": {"open": 5}, "2@gni": {"statfs": 1}, "3@gni": {"open": 4}}),
    ]
    _, second, third = (
        values(clients.poll(text), "nid", "basis", "metadata_operations") for text in polls
    )

    assert second == [("1@gni", "difference", 12), ("3@gni", "total", 4)]
    assert third == [("1@gni", "reset", 5), ("2@gni", "total", 1)]


def test_service_totals_are_shipped_in_full(tmp_path, fixture_text):
    path = tmp_path / "stats"
    path.write_bytes(fixture_text("lustre_service_stats", "get_param_2.15.txt"))
    reader = SnapshotReader(("cat", str(path)), 10, BY_NAME["mds_stats"])
    [first], [second] = reader.read({}), reader.read({})

    [batch], [covered] = second.batches, second.batches[0].coverage
    assert batch.rows.equals(first.batches[0].rows)
    assert batch.rows.height > 0
    assert covered.start == covered.end > first.batches[0].coverage[0].end


def test_an_export_ships_new_and_changed_records(accounting):
    running, done, other = Run("1").running(), Run("1"), Run("2")
    first = accounting.poll(sacct(running, other))
    second = accounting.poll(sacct(done, other))

    assert values(first, "batch_id", "state") == [("1", "running"), ("2", "completed")]
    assert values(second, "batch_id", "state") == [("1", "completed")]
    assert (second.account.accepted, second.account.irrelevant) == (1, 2)


def test_since_is_before_the_last_poll_in_the_cluster_zone(tmp_path):
    zone = ZoneInfo("America/New_York")
    reader = ExportReader(
        tmp_path,
        ("sh", "-c", f"echo {{since}} > {tmp_path}/since"),
        BY_NAME["sacct"],
        Origin(zone=zone),
        timeout_s=10,
        look_back_s=3600,
    )
    list(reader.read({"begun": "2017-07-05T12:00:00+00:00"}))

    assert (tmp_path / "since").read_text() == "2017-07-05T07:00:00\n"
