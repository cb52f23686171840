"""Commands that are polled: counters become what was added, exports become what is new."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from collectors.agent.polling import counters
from collectors.agent.polling.counters import CounterReader
from collectors.agent.polling.exports import ExportReader
from collectors.agent.polling.snapshots import SnapshotReader
from collectors.formats import FORMATS, Origin
from collectors.parsed import SourceUnavailable
from tests.logs import Run, job_stats, md_stats, sacct

MDT, OST, OTHER_OST = "lake-MDT0000", "lake-OST0000", "lake-OST0001"


class Polled:
    """A command whose output the test writes, and an agent that is started anew for each poll."""

    def __init__(self, folder, new_reader):
        self.output = folder / "output"
        self.new_reader = new_reader
        self.place = {}

    def poll(self, text):
        """Return the batch of a poll; the place is kept."""
        reading = self.poll_and_die(text)
        self.place = reading.place
        [batch] = reading.batches
        return batch

    def poll_and_die(self, text):
        self.output.write_text(text)
        [reading] = self.new_reader(("cat", str(self.output))).read(self.place)
        return reading


@pytest.fixture
def jobs(tmp_path):
    kind = counters.of_jobs(idle=timedelta(minutes=10))
    return Polled(tmp_path, lambda command: CounterReader(tmp_path, command, 10, kind))


@pytest.fixture
def targets(tmp_path):
    kind = counters.of_targets()
    return Polled(tmp_path, lambda command: CounterReader(tmp_path, command, 10, kind))


@pytest.fixture
def accounting(tmp_path):
    def new_reader(command):
        return ExportReader(
            tmp_path, command, FORMATS["sacct"], Origin(), timeout_s=10, look_back_s=3600
        )

    return Polled(tmp_path, new_reader)


def told(batch, *columns):
    return batch.rows.select(*columns).sort(columns).rows()


def test_a_poll_tells_what_jobs_added_since_the_last(jobs):
    first = jobs.poll(job_stats(MDT, {"1": {"open": 100, "close": 90}}))
    second = jobs.poll(job_stats(MDT, {"1": {"open": 130, "close": 90}, "2": {"open": 7}}))

    assert told(first, "job", "basis", "open", "close") == [("1", "total", 100, 90)]
    assert told(second, "job", "basis", "open") == [("1", "difference", 30), ("2", "new_entry", 7)]
    [covered] = second.coverage
    assert covered.target == MDT
    assert (covered.start, covered.end) == second.rows.select("start", "end").row(0)
    assert covered.start == first.coverage[0].end


def test_a_poll_without_any_change_covers_its_interval_all_the_same(jobs):
    jobs.poll(job_stats(MDT, {"1": {"open": 100}}))
    second = jobs.poll(job_stats(MDT, {"1": {"open": 100}}))

    assert second.rows.is_empty()
    assert [covered.target for covered in second.coverage] == [MDT]
    assert second.account.lines == second.account.accepted


@pytest.mark.parametrize("since", [7, 0])
def test_counters_that_were_cleared_are_told_even_where_nothing_was_counted_since(jobs, since):
    used_last = datetime.now(UTC)
    jobs.poll(job_stats(MDT, {"1": {"open": 100}}, snapshot=used_last))
    second = jobs.poll(job_stats(MDT, {"1": {"open": since}}, snapshot=used_last))

    assert told(second, "job", "basis", "open") == [("1", "reset", since)]


def test_osts_are_folded_and_each_is_covered(jobs):
    jobs.poll(job_stats(OST, {"1": {"punch": 1}}) + job_stats(OTHER_OST, {"1": {"punch": 5}}))
    second = jobs.poll(
        job_stats(OST, {"1": {"punch": 3}}) + job_stats(OTHER_OST, {"1": {"punch": 9}})
    )

    assert told(second, "target", "job", "basis", "punch") == [("", "1", "difference", 6)]
    assert [covered.target for covered in second.coverage] == [OST, OTHER_OST]


def test_what_an_agent_read_before_it_died_is_told_by_the_next(jobs):
    jobs.poll(job_stats(MDT, {"1": {"open": 100}}))
    jobs.poll_and_die(job_stats(MDT, {"1": {"open": 130}}))
    third = jobs.poll(job_stats(MDT, {"1": {"open": 140}}))

    assert told(third, "job", "basis", "open") == [("1", "difference", 40)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "no counters", id="nothing is printed"),
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
def test_a_poll_that_makes_no_sense_is_not_kept(jobs, text, reason):
    with pytest.raises(SourceUnavailable, match=reason):
        jobs.poll(text)


def test_a_command_that_fails_is_no_poll(jobs, tmp_path):
    with pytest.raises(SourceUnavailable, match=r"ended with status 1: .*No such file"):
        list(jobs.new_reader(("cat", str(tmp_path / "nothing"))).read({}))


def test_targets_add_up_from_poll_to_poll(targets):
    polls = [{"open": 50}, {"open": 60, "mkdir": 3}, {"mkdir": 4}, {"open": 61}, {"open": 2}]
    batches = [targets.poll(md_stats(MDT, counted)) for counted in polls]

    assert [told(batch, "basis", "open", "mkdir") for batch in batches] == [
        [("total", 50, None)],
        [("difference", 10, 3)],
        [("difference", 0, 1)],  # the line of `open` was torn: it goes on from 60
        [("difference", 1, 0)],
        [("reset", 2, None)],
    ]


def test_totals_that_the_portal_subtracts_are_told_whole_at_their_moment(tmp_path, fixture_text):
    path = tmp_path / "stats"
    path.write_bytes(fixture_text("lustre_service_stats", "get_param_2.15.txt"))
    reader = SnapshotReader(("cat", str(path)), 10, FORMATS["mds_stats"])
    [first], [second] = reader.read({}), reader.read({})

    [batch], [covered] = second.batches, second.batches[0].coverage
    assert batch.rows.equals(first.batches[0].rows)
    assert batch.rows.height > 0
    assert covered.start == covered.end > first.batches[0].coverage[0].end


def test_an_export_tells_what_is_new_or_has_changed(accounting):
    running, done, other = Run("1").running(), Run("1"), Run("2")
    first = accounting.poll(sacct(running, other))
    second = accounting.poll(sacct(done, other))

    assert told(first, "batch_id", "state") == [("1", "running"), ("2", "completed")]
    assert told(second, "batch_id", "state") == [("1", "completed")]
    assert (second.account.accepted, second.account.irrelevant) == (1, 2)


def test_an_export_is_asked_from_before_the_last_poll_on_in_the_zone_of_the_cluster(tmp_path):
    zone = ZoneInfo("America/New_York")
    reader = ExportReader(
        tmp_path,
        ("sh", "-c", f"echo {{since}} > {tmp_path}/asked"),
        FORMATS["sacct"],
        Origin(zone=zone),
        timeout_s=10,
        look_back_s=3600,
    )
    list(reader.read({"begun": "2017-07-05T12:00:00+00:00"}))

    assert (tmp_path / "asked").read_text() == "2017-07-05T07:00:00\n"
