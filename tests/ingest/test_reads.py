"""Reads of job_stats: totals become what was done between two reads, or since nobody knows when."""

import subprocess
from datetime import timedelta
from itertools import pairwise

import pytest
from django.core.management import CommandError

from collectors.source import CHUNK_BYTES
from tests.logs import Run, at, job_stats, md_stats, sacct

DIFFERENCE, NEW_ENTRY, RESTARTED, RESET, TOTAL = 1, 2, 3, 4, 5
MDT = "lake-MDT0000"


@pytest.fixture(autouse=True)
def _everything_reconciles(site, reconcile):
    yield
    assert reconcile()


@pytest.fixture
def read(logs, ingest):
    """Load what a target's counters showed at a time of day."""

    def run(clock, text, form="job_stats", **options):
        path = logs(f"{form}-{clock}", text)
        return ingest(form, path, at=at(clock).isoformat(), **options)

    return run


@pytest.fixture
def windows(queries):
    """Opens with the interval they lie in and what they rest on, by its end."""

    def rows():
        return queries(
            "SELECT to_char(w.start, 'HH24:MI'), to_char(w.\"end\", 'HH24:MI'), w.open, w.basis "
            'FROM telemetry_iowindow w ORDER BY w."end", w.source_job_id'
        )

    return rows


def samples(*paths):
    """The operations of some dumps, as awk adds them (renames of a kind are renames already)."""
    script = r"""/samples:/ && $1 !~ /dir_rename/ {
        sub(/.*samples: */, ""); sub(/,.*/, ""); s += $0 } END { print s + 0 }"""
    done = subprocess.run(["awk", script, *paths], capture_output=True, text=True, check=True)
    return int(done.stdout)


def charged(account):
    return sum(account["attributed"].values()) + sum(
        account[kind] for kind in ("pending", "ambiguous", "unattributed")
    )


def test_a_single_dump_holds_as_many_operations_as_awk_finds(logs, ingest):
    entries = {
        str(job): {"open": 3 * job, "close": job, "rename": 5, "samedir_rename": 4, "getattr": 0}
        for job in range(1, 40)
    } | {"cp.0": {"open": 7}, '""': {"open": 9}}
    dump = logs("dump", job_stats(MDT, entries))

    account = ingest("job_stats", dump, at="2017-07-05T12:00:00Z")

    assert account["operations"] == charged(account) == samples(dump)
    assert account["attributed"]["process"] == 7
    assert account["unattributed"] == 9


def test_a_series_of_dumps_adds_up_to_what_awk_finds_in_the_last(logs, ingest, read, queries):
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
    assert all(charged(account) == account["operations"] for account in accounts)
    assert sum(account["operations"] for account in accounts) == samples(dumps[-1])


def test_the_jobs_of_a_target_add_up_to_what_the_target_counts_itself(read, queries):
    for clock, factor in (("12:00", 1), ("12:10", 4)):
        jobs = {str(job): {"open": factor * job, "close": factor} for job in range(1, 10)}
        read(clock, job_stats(MDT, jobs, snapshot=clock))
        totals = {"open": factor * 45 + 1_000, "close": factor * 9}
        account = read(clock, md_stats(MDT, totals), "md_stats")
        assert account["accepted"] == 4

    between = "SELECT sum(open), sum(close) FROM telemetry_iowindow WHERE basis = 1"
    gained = "SELECT max(open) - min(open), max(close) - min(close) FROM telemetry_targetsnapshot"
    assert queries(between) == queries(gained) == [(135, 27)]


def test_what_the_first_read_shows_was_done_nobody_knows_when(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))

    assert windows() == [("12:00", "12:00", 10, TOTAL)]


def test_a_job_that_appears_between_two_reads_began_there(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))
    read("12:10", job_stats(MDT, {"77": {"open": 10}, "78": {"open": 4}}))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:10", 4, NEW_ENTRY)]


def test_an_entry_older_than_the_read_that_lacks_it_was_missed_by_it(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}, start="11:00"))
    read("12:10", job_stats(MDT, {"78": {"open": 4}}, start="11:30"))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:10", 4, TOTAL)]


def test_an_entry_that_idled_and_was_dropped_begins_again(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}, snapshot="11:40"))
    read("12:10", job_stats(MDT, {"77": {"open": 3}}, snapshot="12:09"))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:10", 3, RESTARTED)]


def test_an_entry_says_itself_that_it_began_again(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}, snapshot="12:00", start="11:00"))
    read("12:10", job_stats(MDT, {"77": {"open": 12}}, snapshot="12:10", start="12:05"))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:10", 12, RESTARTED)]


def test_counters_that_fall_for_no_reason_are_a_reset(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}, snapshot="12:00"))
    read("12:05", job_stats(MDT, {"77": {"open": 3}}, snapshot="12:05"))

    assert windows() == [("12:00", "12:00", 10, TOTAL), ("12:00", "12:05", 3, RESET)]


def test_one_counter_that_falls_resets_its_entry(read, queries):
    read("12:00", job_stats(MDT, {"77": {"open": 10, "close": 10}}, snapshot="12:00"))
    read("12:05", job_stats(MDT, {"77": {"open": 15, "close": 3}}, snapshot="12:05"))

    assert queries("SELECT open, close, basis FROM telemetry_iowindow WHERE basis <> 5") == [
        (15, 3, RESET)
    ]


def test_after_a_remount_every_entry_begins_again(read, windows):
    read("12:00", job_stats(MDT, {"1": {"open": 5}, "2": {"open": 6}}, start="11:00"))
    read("12:10", job_stats(MDT, {"1": {"open": 1}, "2": {"open": 9}}, start="12:04"))

    assert windows()[2:] == [("12:00", "12:10", 1, RESTARTED), ("12:00", "12:10", 9, RESTARTED)]


def test_a_counter_that_cannot_be_read_is_unknown_until_it_was_read_twice(read, queries):
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


def test_what_a_target_does_not_count_is_not_zero(read, queries):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))

    assert queries("SELECT open, close, read_bytes FROM telemetry_iowindow") == [(10, None, None)]


def test_entries_that_did_nothing_between_two_reads_leave_no_window(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))
    read("12:10", job_stats(MDT, {"77": {"open": 10}}))

    assert windows() == [("12:00", "12:00", 10, TOTAL)]


def test_the_osts_of_a_filesystem_are_folded_into_one(read, queries):
    for clock, size in (("12:00", 0), ("12:10", 1_000)):
        read(
            clock,
            job_stats("lake-OST0000", {"77": {"read_bytes": (size, size * 7)}}, snapshot=clock)
            + job_stats("lake-OST0001", {"77": {"read_bytes": (size, size * 2)}}, snapshot=clock),
        )

    assert queries("SELECT target_id, read, read_bytes FROM telemetry_iowindow") == [
        (0, 2_000, 9_000)
    ]


def test_an_ost_that_is_read_apart_keeps_its_own_intervals(read, queries):
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


def test_a_read_without_any_job_is_a_read_all_the_same(read, windows, queries):
    read("12:00", f"mdt.{MDT}.job_stats=job_stats:\n")
    read("12:10", job_stats(MDT, {"77": {"open": 4}}, snapshot="12:09"))

    assert queries("SELECT count(*) FROM telemetry_coverage") == [(2,)]
    assert windows() == [("12:00", "12:10", 4, NEW_ENTRY)]


def test_a_value_without_its_name_is_of_the_target_that_is_named_for_it(read, windows):
    text = job_stats(MDT, {"77": {"open": 4}}).partition("\n")[2]

    read("11:50", "job_stats:\n", target=MDT)
    read("12:00", text, target=MDT)

    assert windows() == [("11:50", "12:00", 4, NEW_ENTRY)]


def test_a_target_is_read_once_at_a_time(read, windows):
    read("12:00", job_stats(MDT, {"77": {"open": 10}}))

    with pytest.raises(Exception, match=r"overlaps .*job_stats-12:00 of target lake-MDT0000"):
        read("12:00", job_stats(MDT, {"77": {"open": 11}}))

    assert windows() == [("12:00", "12:00", 10, TOTAL)]


def test_a_read_may_be_replaced_and_its_neighbours_follow(read, windows):
    for clock, opens in (("12:00", 10), ("12:10", 20), ("12:20", 30)):
        read(clock, job_stats(MDT, {"77": {"open": opens}}, snapshot=clock))

    read("12:10", job_stats(MDT, {"77": {"open": 24}}, snapshot="12:10"), replace=True)

    assert windows() == [
        ("12:00", "12:00", 10, TOTAL),
        ("12:00", "12:10", 14, DIFFERENCE),
        ("12:10", "12:20", 6, DIFFERENCE),
    ]


def test_the_time_of_a_read_is_the_files_own_unless_told(logs, ingest, queries):
    path = logs("dump", job_stats(MDT, {"77": {"open": 10}}))
    moment = at("12:34") + timedelta(seconds=5)
    subprocess.run(["touch", "-d", moment.isoformat(), path], check=True)

    ingest("job_stats", path)

    assert queries("SELECT taken_at FROM telemetry_jobsnapshot") == [(moment,)]


def _touched(path, moment):
    subprocess.run(["touch", "-d", moment.isoformat(), path], check=True)
    return path


def test_the_time_that_a_file_had_is_told(logs, call):
    path = _touched(logs("dump", job_stats(MDT, {"77": {"open": 10}})), at("12:34"))
    others = [_touched(logs(f"dump-{n}", job_stats(MDT, {})), at(f"13:0{n}")) for n in (1, 2)]

    alone = call("ingest", "job_stats", path)
    several = call("ingest", "job_stats", *others)
    told = call("ingest", "md_stats", logs("md", md_stats(MDT, {})), f"--at={at('12:00')}")

    assert f"{path}: read at 2017-07-05 12:34:00 UTC (modification time of the file)" in alone
    assert "2 files: read at 2017-07-05 13:01:00 to 2017-07-05 13:02:00 UTC" in several
    assert "own time" not in told


@pytest.mark.parametrize(
    ("clock", "warned"),
    [
        pytest.param("12:59", False, id="within the hour"),
        pytest.param("16:00", True, id="a copy made later, or another zone"),
        pytest.param("10:30", True, id="a clock that is behind"),
    ],
)
@pytest.mark.parametrize("form", ["job_stats", "md_stats"])
def test_a_file_whose_time_its_text_contradicts_is_warned_of(
    logs, ingest, capsys, form, clock, warned
):
    text = {
        "job_stats": job_stats(MDT, {"77": {"open": 1}}, snapshot="12:00"),
        "md_stats": md_stats(MDT, {"open": 1}, snapshot="12:00"),
    }[form]

    ingest(form, _touched(logs("dump", text), at("12:10")), at=f"2017-07-05T{clock}:00Z")
    with_at = capsys.readouterr().err
    ingest(form, _touched(logs("copy", text), at(clock) + timedelta(seconds=1)))
    without_at = capsys.readouterr().err

    for said in (with_at, without_at):
        assert said.count("Warning") == warned
        assert ("latest snapshot_time 2017-07-05 12:00:00 UTC" in said) == warned
    assert ("Check the time given with --at" in with_at) == warned
    assert "Give the time of the read" not in with_at
    assert ("Give the time of the read with --at" in without_at) == warned


def _osts(count, jobs=1):
    """Return job_stats of the OSTs of a filesystem."""
    entry = {"write_bytes": (2, 4096), "punch": 3}
    return "".join(
        job_stats(f"pond-OST{n:04x}", {str(77 + job): entry for job in range(jobs)})
        for n in range(count)
    )


def test_all_targets_that_are_not_registered_are_named_in_one_message(logs, ingest, queries):
    text = job_stats(MDT, {"77": {"open": 1}}) + _osts(1_008, jobs=15)
    path = logs("dump", text + job_stats("pond-MDT0007", {}))
    assert len(text) > CHUNK_BYTES  # it is read in several parts

    with pytest.raises(CommandError) as refusal:
        ingest("job_stats", path, at=at("12:00").isoformat())

    assert str(refusal.value).startswith(
        f"{path}: 1,009 targets are not registered: pond-MDT0007, pond-OST[0000-03ef]. "
        "Load it with --register-targets"
    )
    assert queries("SELECT count(*) FROM telemetry_jobsnapshot") == [(0,)]


def test_targets_are_registered_by_their_names(logs, ingest, queries, capsys):
    path = logs("dump", _osts(18) + job_stats("pond-MDT0007", {"77": {"open": 5}}))
    told = {"at": at("12:00").isoformat(), "register-targets": True}

    account = ingest("job_stats", path, **told)

    assert account["operations"] == 18 * 5 + 5
    assert queries(
        "SELECT kind, count(*), min(t.name), max(t.name) FROM site_target t JOIN site_filesystem f "
        "ON f.id = filesystem_id WHERE f.name = 'pond' AND server_id IS NULL GROUP BY 1 ORDER BY 1"
    ) == [
        ("mdt", 1, "pond-MDT0007", "pond-MDT0007"),
        ("ost", 18, "pond-OST0000", "pond-OST0011"),
    ]
    assert capsys.readouterr().err.startswith(
        "Registered 19 targets: pond-MDT0007, pond-OST[0000-0011]. Their servers are not known"
    )

    again = ingest("job_stats", path, **told)

    assert again["operations"] == account["operations"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        (
            ["sea-OST0001"],
            {},
            "Filesystem sea is not registered. Add it as [[filesystem]], or name ",
        ),
        (
            ["lake-OST0002", "oss1"],
            {},
            "Not names of targets, such as lake-OST0001: 'oss1'. Register them as [[target]].",
        ),
        (
            ["sea-OST0001", "bay-OST0001"],
            {"filesystem": "pond"},
            "The targets belong to 2 filesystems: bay, sea. Load one at a time.",
        ),
    ],
)
def test_a_target_whose_name_does_not_say_what_it_is_is_not_registered(
    logs, ingest, queries, targets, options, message
):
    before = queries("SELECT name FROM site_target ORDER BY 1")
    path = logs("dump", "".join(job_stats(target, {"77": {"open": 1}}) for target in targets))

    with pytest.raises(CommandError) as refusal:
        ingest(
            "job_stats",
            path,
            **{"at": at("12:00").isoformat(), "register-targets": True} | options,
        )

    assert str(refusal.value).startswith(f"{path}: {message}")
    assert queries("SELECT name FROM site_target ORDER BY 1") == before


def test_a_filesystem_may_have_another_name_here_than_lustre_gives_it(logs, ingest, queries):
    path = logs("dump", md_stats("scratch-MDT0000", {"open": 1}))

    ingest(
        "md_stats",
        path,
        **{"at": at("12:00").isoformat(), "register-targets": True, "filesystem": "pond"},
    )

    assert queries(
        "SELECT f.name FROM site_target t JOIN site_filesystem f ON f.id = t.filesystem_id "
        "WHERE t.name = 'scratch-MDT0000'"
    ) == [("pond",)]
