"""Reads of job_stats: windows are the differences between consecutive reads."""

import subprocess
from datetime import timedelta
from itertools import pairwise

import pytest

from ioportal.jobs.models import Job
from tests.logs import Run, at, job_stats, md_stats, sacct

DIFFERENCE, NEW_ENTRY, RESTARTED, RESET, TOTAL = 1, 2, 3, 4, 5
MDT = "lake-MDT0000"


pytestmark = pytest.mark.usefixtures("everything_reconciles")


@pytest.fixture
def read(logs, ingest):
    """Ingest the counters of a target at a time of day."""

    def run(clock, text, form="job_stats", **options):
        path = logs(f"{form}-{clock}", text)
        return ingest(form, path, at=at(clock).isoformat(), **options)

    return run


@pytest.fixture
def windows(queries):
    """Return opens with interval and basis, in order of the interval's end."""

    def rows():
        return queries(
            "SELECT to_char(w.start, 'HH24:MI'), to_char(w.\"end\", 'HH24:MI'), w.open, w.basis "
            'FROM telemetry_iowindow w ORDER BY w."end", w.source_job_id'
        )

    return rows


def samples(*paths):
    """Sum the operations of dumps with awk (`rename` includes renames by directory)."""
    script = r"""/samples:/ && $1 !~ /dir_rename/ {
        sub(/.*samples: */, ""); sub(/,.*/, ""); s += $0 } END { print s + 0 }"""
    completed = subprocess.run(["awk", script, *paths], capture_output=True, text=True, check=True)
    return int(completed.stdout)


def attributed_operations(account):
    return sum(account["attributed"].values()) + sum(
        account[kind] for kind in ("pending", "ambiguous", "unattributed")
    )


def test_operations_of_a_dump_equal_a_count_by_awk(logs, ingest):
    entries = {
        str(job): {"open": 3 * job, "close": job, "rename": 5, "samedir_rename": 4, "getattr": 0}
        for job in range(1, 40)
    } | {"cp.0": {"open": 7}, '""': {"open": 9}}
    dump = logs("dump", job_stats(MDT, entries))

    account = ingest("job_stats", dump, at="2017-07-05T12:00:00Z")

    assert account["operations"] == attributed_operations(account) == samples(dump)
    assert account["attributed"]["process"] == 7
    assert account["unattributed"] == 9


def test_operations_of_a_series_of_dumps_equal_a_count_by_awk(logs, ingest, read, queries):
    ingest("sacct", logs("jobs", sacct(Run("1"), Run("2"))), cluster="anvil")
    dumps = []
    for minute in range(5):
        entries = {
            "1": {"open": 10 * minute, "close": 5 * minute},
            "2": {"open": 100 + minute, "getattr": 7},
            "ls.0": {"statfs": minute * minute},
        }
        text = job_stats(MDT, entries, snapshot=f"12:0{minute}")
        dumps.append(logs(f"dump-{minute}", text))

    accounts = [read(f"12:0{number}", dump.read_text()) for number, dump in enumerate(dumps)]

    assert [account["operations"] for account in accounts] == [
        samples(dumps[0]),
        *(samples(now) - samples(before) for before, now in pairwise(dumps)),
    ]
    assert all(attributed_operations(account) == account["operations"] for account in accounts)
    assert sum(account["operations"] for account in accounts) == samples(dumps[-1])


def test_operations_of_jobs_add_up_to_the_counters_of_their_target(read, queries):
    for clock, factor in (("12:00", 1), ("12:10", 4)):
        jobs = {str(job): {"open": factor * job, "close": factor} for job in range(1, 10)}
        read(clock, job_stats(MDT, jobs, snapshot=clock))
        totals = {"open": factor * 45 + 1_000, "close": factor * 9}
        account = read(clock, md_stats(MDT, totals), "md_stats")
        assert account["accepted"] == 4

    between = "SELECT sum(open), sum(close) FROM telemetry_iowindow WHERE basis = 1"
    gained = "SELECT max(open) - min(open), max(close) - min(close) FROM telemetry_targetsnapshot"
    assert queries(between) == queries(gained) == [(135, 27)]


def test_operations_before_the_first_read_have_no_start_time(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))

    assert windows() == [("12:00", "12:00", 10, TOTAL)]


def test_a_new_entry_starts_between_two_reads(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))
    read("12:10", job_stats(MDT, {"77": {"open": 10}, "78": {"open": 4}}))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:10", 4, NEW_ENTRY)]


def test_a_new_entry_older_than_the_previous_read_is_a_total(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}, start="11:00"))
    read("12:10", job_stats(MDT, {"78": {"open": 4}}, start="11:30"))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:10", 4, TOTAL)]


def test_an_entry_removed_while_idle_is_restarted(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}, snapshot="11:40"))
    read("12:10", job_stats(MDT, {"77": {"open": 3}}, snapshot="12:09"))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:10", 3, RESTARTED)]


@pytest.mark.parametrize(("used", "basis"), [("11:54", RESTARTED), ("11:57", RESET)])
def test_an_entry_that_starts_again_before_its_lifetime_ended_is_reset(read, windows, used, basis):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}, snapshot=used, start="11:00"))
    read("12:10", job_stats(MDT, {"77": {"open": 12}}, snapshot="12:10", start="12:05"))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:10", 12, basis)]


@pytest.mark.parametrize(("used", "cleared"), [("11:50", False), ("11:57", True)])
def test_an_entry_that_vanishes_before_its_lifetime_ended_was_cleared(read, windows, used, cleared):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}, snapshot=used, start="11:00"))
    read("12:05", job_stats(MDT, {"78": {"open": 1}}, start=""))
    read("12:10", job_stats(MDT, {"77": {"open": 2}, "78": {"open": 1}}, start=""))

    # The target restarted, so operations of the new entry may be missing, too.
    marks = [("12:00", "12:05", None, RESET), ("12:00", "12:05", 1, RESET)] if cleared else []
    assert [row for row in windows() if row[3] == RESET] == marks
    assert ("12:05", "12:10", 2, NEW_ENTRY) in windows()


@pytest.mark.parametrize(
    ("before", "after", "basis", "gained"),
    [
        pytest.param({"x": 10}, {"77": 2130}, RESET, 2130, id="another entry vanished"),
        pytest.param({"x": 10}, {"x": 3, "77": 2130}, RESET, 2130, id="another entry fell"),
        pytest.param({"x": 10, "77": 5}, {"x": 3, "77": 12}, RESET, 7, id="more than before"),
        pytest.param(
            {"x": 10, "y": 1, "77": 5},
            {"x": 3, "y": 2, "77": 12},
            DIFFERENCE,
            7,
            id="most entries continue",
        ),
    ],
)
def test_a_restart_of_the_target_marks_all_its_entries(read, windows, before, after, basis, gained):
    for clock, opens in (("12:00", before), ("12:05", after)):
        entries = {job: {"open": number} for job, number in opens.items()}
        read(clock, job_stats(MDT, entries, snapshot=clock, start=""))

    assert ("12:00", "12:05", gained, basis) in windows()


def test_an_entry_older_than_the_previous_read_shows_that_one_entry_was_cleared(read, windows):
    for clock, cleared_at in (("12:00", "11:00"), ("12:10", "12:05")):
        cleared = job_stats(MDT, {"x": {"open": 5}}, snapshot=clock, start=cleared_at)
        others = job_stats(MDT, {"77": {"open": int(clock[3:]) + 1}}, snapshot=clock, start="11:30")
        read(clock, cleared + others.partition("job_stats:\n")[2])

    assert {row[2:] for row in windows() if row[0] != row[1]} == {(5, RESET), (10, DIFFERENCE)}


def test_operations_lost_by_a_clear_lower_the_quality(read, logs, ingest, refresh):
    ingest("sacct", logs("s", sacct(Run("77"))), cluster="anvil")
    for minute in range(0, 61, 5):
        clock = f"{12 + minute // 60}:{minute % 60:02}"
        # All entries are cleared after each read, with all operations that were not read.
        entries = {"77": {"open": 50_000}} if minute % 10 else {"x": {"open": 1}}
        read(clock, job_stats(MDT, entries, snapshot=clock))
    refresh()

    figures = Job.objects.get(batch_id="77").statistics
    assert (figures.quality, figures.resets) == ("partial", 12)
    assert figures.quality_reasons == [
        "Counters were cleared or restarted 12 times: operations may be missing."
    ]


def test_counters_that_decrease_without_idle_time_are_reset(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}, snapshot="12:00"))
    read("12:05", job_stats(MDT, {"77": {"open": 3}}, snapshot="12:05"))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:05", 3, RESET)]


def test_one_decreasing_counter_resets_its_entry(read, queries):
    read("12:00", job_stats(MDT, {"77": {"open": 10, "close": 10}}, snapshot="12:00"))
    read("12:05", job_stats(MDT, {"77": {"open": 15, "close": 3}}, snapshot="12:05"))

    assert queries("SELECT open, close, basis FROM telemetry_iowindow WHERE basis <> 5") == [
        (15, 3, RESET)
    ]


def test_a_remount_resets_every_entry(read, windows):
    read("12:00", job_stats(MDT, {"1": {"open": 5}, "2": {"open": 6}}, start="11:00"))
    read("12:10", job_stats(MDT, {"1": {"open": 1}, "2": {"open": 9}}, start="12:04"))

    assert windows()[2:] == [("12:00", "12:10", 1, RESET), ("12:00", "12:10", 9, RESET)]


def test_an_unreadable_counter_is_null_until_it_is_read_twice(read, queries):
    unreadable = job_stats(MDT, {"77": {"open": 20, "close": 12}}).replace(
        "close:           { samples:          12, unit:  reqs }", "close: { samples: twelve }"
    )
    read("12:00", job_stats(MDT, {"77": {"open": 10, "close": 8}}, snapshot="12:00"))
    account = read("12:10", unreadable)
    read("12:20", job_stats(MDT, {"77": {"open": 30, "close": 20}}, snapshot="12:20"))
    read("12:30", job_stats(MDT, {"77": {"open": 31, "close": 21}}, snapshot="12:30"))

    assert account["rejected"] == 1
    assert queries('SELECT open, close FROM telemetry_iowindow ORDER BY "end"') == [
        (10, 8),
        (10, None),
        (10, None),
        (1, 1),
    ]


def test_missing_counters_are_null(read, queries):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))

    assert queries("SELECT open, close, read_bytes FROM telemetry_iowindow") == [(10, None, None)]


def test_idle_entries_have_no_window(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))
    read("12:10", job_stats(MDT, {"77": {"open": 10}}))

    assert windows() == [("12:00", "12:00", 10, TOTAL)]


def test_osts_of_a_filesystem_are_combined(read, queries):
    for clock, size in (("12:00", 0), ("12:10", 1_000)):
        read(
            clock,
            job_stats("lake-OST0000", {"77": {"read_bytes": (size, size * 7)}}, snapshot=clock)
            + job_stats("lake-OST0001", {"77": {"read_bytes": (size, size * 2)}}, snapshot=clock),
        )

    assert queries("SELECT target_id, read, read_bytes FROM telemetry_iowindow") == [
        (0, 2_000, 9_000)
    ]


def test_osts_read_at_different_times_have_separate_windows(read, queries):
    def ost(clock, number, size):
        target = f"lake-OST000{number}"
        read(clock, job_stats(target, {"77": {"write_bytes": (1, size)}}, snapshot=clock))

    ost("12:00", 0, 10)
    ost("12:10", 0, 30)
    ost("12:05", 1, 100)
    ost("12:15", 1, 500)
    ost("12:07", 0, 20)

    rows = queries(
        "SELECT to_char(start, 'HH24:MI'), to_char(\"end\", 'HH24:MI'), write_bytes "
        'FROM telemetry_iowindow ORDER BY start, "end"'
    )
    assert rows == [
        ("12:00", "12:00", 10),
        ("12:00", "12:07", 10),
        ("12:05", "12:05", 100),
        ("12:05", "12:15", 400),
        ("12:07", "12:10", 10),
    ]


def test_a_read_without_jobs_counts_as_a_read(read, windows, queries):
    read("12:00", f"mdt.{MDT}.job_stats=job_stats:\n")
    read("12:10", job_stats(MDT, {"77": {"open": 4}}, snapshot="12:09"))

    assert queries("SELECT count(*) FROM telemetry_coverage") == [(2,)]
    assert windows() == [("12:00", "12:10", 4, NEW_ENTRY)]


def test_the_target_option_names_the_target_of_a_dump(read, windows):
    text = job_stats(MDT, {"77": {"open": 4}}).partition("\n")[2]

    read("11:50", "job_stats:\n", target=MDT)
    read("12:00", text, target=MDT)

    assert windows() == [("11:50", "12:00", 4, NEW_ENTRY)]


def test_a_second_read_at_the_same_time_is_refused(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))

    with pytest.raises(Exception, match="reads of target lake-MDT0000 at the same time"):
        read("12:00", job_stats(MDT, {"77": {"open": 11}}))

    assert windows() == [("12:00", "12:00", 10, TOTAL)]


def test_replacing_a_read_updates_adjacent_windows(read, windows):
    for clock, opens in (("12:00", 10), ("12:10", 20), ("12:20", 30)):
        read(clock, job_stats(MDT, {"77": {"open": opens}}, snapshot=clock))

    read("12:10", job_stats(MDT, {"77": {"open": 24}}, snapshot="12:10"), replace=True)

    assert windows() == [
        ("12:00", "12:00", 10, TOTAL),
        ("12:00", "12:10", 14, DIFFERENCE),
        ("12:10", "12:20", 6, DIFFERENCE),
    ]


def test_the_default_time_of_a_read_is_the_modification_time(logs, ingest, queries):
    path = logs("dump", job_stats(MDT, {"77": {"open": 10}}))
    moment = at("12:34") + timedelta(seconds=5)
    subprocess.run(["touch", "-d", moment.isoformat(), path], check=True)

    ingest("job_stats", path)

    assert queries("SELECT taken_at FROM telemetry_jobsnapshot") == [(moment,)]


def _with_modification_time(path, moment):
    subprocess.run(["touch", "-d", moment.isoformat(), path], check=True)
    return path


def test_the_modification_time_is_reported(logs, call):
    path = _with_modification_time(logs("dump", job_stats(MDT, {"77": {"open": 10}})), at("12:34"))
    more = [
        _with_modification_time(logs(f"dump-{n}", job_stats(MDT, {})), at(f"13:0{n}"))
        for n in (1, 2)
    ]

    single = call("ingest", "job_stats", path)
    several = call("ingest", "job_stats", *more)
    explicit = call("ingest", "md_stats", logs("md", md_stats(MDT, {})), f"--at={at('12:00')}")

    assert f"{path}: read at 2017-07-05 12:34:00 UTC (modification time of the file)" in single
    assert "2 files: read at 2017-07-05 13:01:00 to 2017-07-05 13:02:00 UTC" in several
    assert "own time" not in explicit


@pytest.mark.parametrize(
    ("clock", "warned"),
    [
        pytest.param("12:59", False, id="within the hour"),
        pytest.param("16:00", True, id="a later copy or another time zone"),
        pytest.param("10:30", True, id="a clock that is behind"),
    ],
)
@pytest.mark.parametrize("form", ["job_stats", "md_stats"])
def test_a_time_that_contradicts_the_content_causes_a_warning(
    logs, ingest, capsys, form, clock, warned
):
    text = {
        "job_stats": job_stats(MDT, {"77": {"open": 1}}, snapshot="12:00"),
        "md_stats": md_stats(MDT, {"open": 1}, snapshot="12:00"),
    }[form]

    ingest(
        form, _with_modification_time(logs("dump", text), at("12:10")), at=f"2017-07-05T{clock}:00Z"
    )
    with_at = capsys.readouterr().err
    ingest(form, _with_modification_time(logs("copy", text), at(clock) + timedelta(seconds=1)))
    without_at = capsys.readouterr().err

    for message in (with_at, without_at):
        assert message.count("Warning") == warned
        assert ("latest snapshot_time 2017-07-05 12:00:00 UTC" in message) == warned
    assert ("Check the time given with --at" in with_at) == warned
    assert "Give the time of the read" not in with_at
    assert ("Give the time of the read with --at" in without_at) == warned
