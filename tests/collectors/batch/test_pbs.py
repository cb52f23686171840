from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import tables
from collectors.batch import pbs, states
from collectors.parsed import Account

HEAD = "05/02/2024 11:30:05;E;7001.pbs01;"
TIMES = "ctime=1714633200 start=1714635000 end=1714642205"
NOT_A_RECORD = "not a record: MM/DD/YYYY HH:MM:SS;type;id;attributes"


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture(scope="session")
def parse(source, whole, berlin):
    def run(*lines, zone=berlin, chunk_bytes=1 << 20, **options):
        return whole(pbs.parse(source(*lines, chunk_bytes=chunk_bytes), zone, **options))

    return run


@pytest.fixture
def openpbs(parse, fixture_text):
    return parse(fixture_text("pbs_accounting", "openpbs.txt"))


@pytest.fixture
def torque(parse, fixture_text):
    return parse(fixture_text("pbs_accounting", "torque.txt"))


def job(parsed, batch_id, **values):
    [row] = parsed.table.filter(pl.col("batch_id") == batch_id, **values).to_dicts()
    return row


def test_an_ended_job_is_read_in_full(openpbs):
    assert openpbs.table.schema == tables.JOBS.columns
    assert job(openpbs, "7001", line=6) == {
        "line": 6,
        "cluster": "",
        "batch_id": "7001",
        "array_index": "",
        "launch": "",
        "name": "relax",
        "user": "alice",
        "project": "PHY 12",
        "queue": "workq",
        "state": "timeout",
        "exit_status": 0,
        "exit_signal": 15,
        "submitted_at": utc("2024-05-02T07:00:00"),
        "started_at": utc("2024-05-02T07:30:00"),
        "ended_at": utc("2024-05-02T09:30:05"),
        "node_count": 2,
        "core_count": 64,
        "cpu_s": 453_610,
        "time_limit_s": 7_200,
        "nodes": "c[3-4]",
    }


def test_all_records_of_a_job_are_read(openpbs):
    life = openpbs.table.filter(pl.col("batch_id") == "7001")

    assert life.select("line", "state", "started_at", "ended_at", "nodes").rows() == [
        (2, states.PENDING, None, None, ""),
        (3, states.RUNNING, utc("2024-05-02T07:10:00"), None, "c[1-2]"),
        (4, states.REQUEUED, utc("2024-05-02T07:10:00"), utc("2024-05-02T07:20:00"), "c[1-2]"),
        (5, states.RUNNING, utc("2024-05-02T07:30:00"), None, "c[3-4]"),
        (6, states.TIMEOUT, utc("2024-05-02T07:30:00"), utc("2024-05-02T09:30:05"), "c[3-4]"),
    ]
    assert life["submitted_at"].unique().to_list() == [utc("2024-05-02T07:00:00")]


def test_array_tasks_have_an_index_and_vnodes_are_merged(openpbs):
    task, parent = openpbs.table.filter(pl.col("batch_id") == "7002").to_dicts()

    assert (task["array_index"], task["nodes"], task["core_count"]) == ("4", "c5", 16)
    assert (parent["array_index"], parent["nodes"], parent["started_at"]) == ("", "", None)
    assert task["project"] == "BIO03"


def test_other_known_records_are_irrelevant(openpbs):
    assert openpbs.account == Account(lines=17, accepted=7, rejected=2, irrelevant=8)
    assert openpbs.rejects.select("line", "reason").rows() == [
        (16, "the job ends at 2024-05-02T09:28:20Z, before it starts at 2024-05-02T09:30:00Z"),
        (17, "record type 'J' is not known"),
    ]


def test_torque_counts_slots_one_by_one_or_in_ranges(torque):
    by_one, in_range = job(torque, "811", state="completed"), job(torque, "812")

    assert (by_one["nodes"], by_one["node_count"], by_one["core_count"]) == ("n[01-02]", 2, 4)
    assert (in_range["nodes"], in_range["node_count"], in_range["core_count"]) == ("n12", 1, 29)
    assert in_range["array_index"] == "7"


def test_torque_prints_seconds_or_hours(torque):
    hours, seconds = job(torque, "811", state="completed"), job(torque, "812")

    assert (hours["time_limit_s"], hours["cpu_s"]) == (93_600, 90_061)
    assert (seconds["time_limit_s"], seconds["cpu_s"]) == (3_600, 10)
    assert (seconds["state"], seconds["exit_status"]) == (states.TIMEOUT, -11)


def test_without_hosts_the_requested_node_count_is_used(torque):
    bare = job(torque, "813")

    assert (bare["nodes"], bare["node_count"], bare["core_count"]) == ("", 3, None)


def test_the_header_replaces_missing_times(torque):
    started, by_qtime = job(torque, "814"), job(torque, "815")

    assert started["submitted_at"] == started["started_at"] == utc("2016-11-21T10:08:00")
    assert by_qtime["submitted_at"] == utc("2016-11-20T08:00:01")
    assert by_qtime["ended_at"] == utc("2016-11-21T10:10:00")


def test_a_record_without_a_run_is_irrelevant(torque):
    assert torque.account == Account(lines=11, accepted=6, rejected=3, irrelevant=2)
    assert torque.rejects.select("line", "reason").rows() == [
        (6, NOT_A_RECORD),
        (9, "the record has none of ctime, qtime, etime and start"),
        (11, "time '2016-11-21T25:10:00' is not a time"),
    ]


@pytest.mark.parametrize(
    ("head", "walltime", "ended_at"),
    [
        pytest.param("10/27/2024 02:30:00", "01:00:00", "2024-10-27T00:30:00", id="first 02:30"),
        pytest.param("10/27/2024 02:30:00", "02:00:00", "2024-10-27T01:30:00", id="second 02:30"),
        pytest.param("03/31/2024 03:30:00", "00:30:00", "2024-03-31T01:30:00", id="after the gap"),
    ],
)
def test_the_wall_time_decides_in_the_repeated_hour(parse, head, walltime, ended_at):
    start = int(datetime.fromisoformat(ended_at).replace(tzinfo=UTC).timestamp())
    start -= {"01:00:00": 3_600, "02:00:00": 7_200, "00:30:00": 1_800}[walltime]

    parsed = parse(f"{head};E;1;start={start} resources_used.walltime={walltime} Exit_status=0")

    assert parsed.table["ended_at"].to_list() == [utc(ended_at)]


def test_headers_are_read_in_the_zone_of_the_cluster(parse, new_york):
    parsed = parse("05/02/2024 11:30:05;S;1;user=alice", zone=new_york)

    assert parsed.table["started_at"].to_list() == [utc("2024-05-02T15:30:05")]


def test_exec_host_of_a_cray_is_not_a_compute_node(parse, fixture_text):
    parsed = parse(fixture_text("pbs_accounting", "cray.txt"), exec_hosts_are_compute_nodes=False)

    [row] = parsed.table.select("nodes", "node_count", "core_count").rows()
    assert row == ("", 2, 48)


def test_a_wrapped_record_is_joined(parse, fixture_text):
    parsed = parse(fixture_text("pbs_accounting", "wrapped.txt"))

    assert parsed.table.select("line", "batch_id", "project", "nodes", "time_limit_s").rows() == [
        (2, "7101", "PHY 12", "c[3-4]", 7_200),
        (7, "7102", "", "", None),
    ]


def test_stray_lines_are_rejected_and_not_joined(parse, fixture_text):
    parsed = parse(fixture_text("pbs_accounting", "wrapped.txt"))

    assert parsed.rejects.select("line", "reason").rows() == [
        (1, NOT_A_RECORD),
        (8, NOT_A_RECORD),
        (9, "the record has none of ctime, qtime, etime and start"),
    ]
    assert parsed.account == Account(lines=9, accepted=2, rejected=3, irrelevant=4)


ENDED = f"{HEAD}user=alice {TIMES} Exit_status=0 resources_used.walltime=02:00:05"
STRAY = "Connection to pbs01 closed."


@pytest.mark.parametrize(
    ("lines", "rows", "rejects"),
    [
        pytest.param([ENDED, STRAY, ENDED], [1, 3], [2], id="a stray line"),
        pytest.param([ENDED, STRAY, "\tbye; now", ENDED], [1, 4], [2, 3], id="two stray lines"),
        pytest.param([*ENDED.rsplit(" ", 1), STRAY, ENDED], [1, 4], [3], id="behind a wrapped one"),
        pytest.param([ENDED, "\0" * 512, ENDED], [1, 3], [], id="a line of NULs"),
        pytest.param([ENDED, "\0" * 512 + ENDED], [1, 2], [], id="NULs before the next record"),
        pytest.param([ENDED, "\0" * 512 + STRAY], [1], [2], id="NULs and a stray line"),
    ],
)
def test_stray_lines_do_not_reject_a_complete_record(parse, lines, rows, rejects):
    parsed = parse(*lines)

    assert parsed.table["line"].to_list() == rows
    assert parsed.table["state"].to_list() == ["completed"] * len(rows)
    assert parsed.rejects["line"].to_list() == rejects
    assert parsed.rejects["reason"].to_list() == [NOT_A_RECORD] * len(rejects)
    assert parsed.account.lines == len(lines)


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("resources_used.walltime=soon", id="an attribute"),
        pytest.param("and more resources_used.walltime=1", id="a value and an attribute"),
        pytest.param("resources_used.walltime=soon\nStray.", id="an attribute and a stray line"),
    ],
)
def test_a_wrapped_record_is_never_read_without_its_bad_attribute(parse, rest):
    parsed = parse(f"{HEAD}{TIMES} Exit_status=0", *rest.splitlines())

    assert parsed.table.is_empty()
    assert parsed.rejects["line"].to_list() == [1]


def test_a_record_is_bounded(parse):
    rest = "x" * 100_000

    parsed = parse(f"{HEAD}{TIMES} run_count=1", *[rest] * 12)

    assert parsed.account == Account(lines=13, accepted=1, rejected=2, irrelevant=10)


@pytest.mark.parametrize(
    ("attributes", "user"),
    [
        ('user="alice b"', "alice b"),
        ('account="a user=mallory b" user=alice', "alice"),
        ('x=\'{"user=": "mallory"}\' user=alice', "alice"),
        ("select=1:ncpus=1 user=alice", "alice"),
        ("user=alice jobname=it's user=mallory", "alice"),
        ('user="alice', '"alice'),
        ("user=", ""),
        ("group=phy", ""),
    ],
)
def test_the_first_of_repeated_attributes_counts(parse, attributes, user):
    parsed = parse(f"{HEAD}{attributes} {TIMES}")

    assert parsed.table["user"].to_list() == [user]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ("ctime=soon", "ctime 'soon' is not a whole number"),
        (f"{TIMES} Exit_status=none", "Exit_status 'none' is not a whole number"),
        (f"{TIMES} Exit_status=99999999999", "Exit_status 99999999999 is too large"),
        (f"{TIMES} resources_used.cput=long", "resources_used.cput 'long' is not a duration"),
        (f"{TIMES} exec_host=c3/x", "exec_host: 'x' is not a range of slots"),
        (f"{TIMES} exec_host=[host]/0", "'[host]' is not a host name"),
        (f"{TIMES} exec_host=@all/0", "'@all' is not a host name"),
        (f"{TIMES} exec_host=" + "+".join(["c1/0*999999999"] * 3), "2999999997 cores are too many"),
        (f"{TIMES} exec_vnode=" + "(c1:ncpus=999999999)" * 3, "2999999997 cores are too many"),
        (f"{TIMES} total_execution_slots=1:2", "total_execution_slots '1:2' is not a whole number"),
    ],
)
def test_a_bad_value_rejects_its_record(parse, attributes, reason):
    parsed = parse(f"{HEAD}{attributes}")

    assert parsed.rejects["reason"].to_list() == [reason]


@pytest.mark.parametrize(
    "text", ["a=" + " " * 500_000 + "b", "a= " * 200_000, "' \" " * 200_000, "a='\" " * 100_000]
)
def test_a_hostile_record_is_read_in_linear_time(parse, text):
    parsed = parse(f"{HEAD}{TIMES} jobname=x {text} user=alice")

    assert parsed.table["user"].to_list() == ["alice"]


VALUES = st.text(
    st.characters(codec="ascii", min_codepoint=33, exclude_characters="\"'="), max_size=20
)


@given(values=st.lists(VALUES, min_size=3, max_size=3), chunk_bytes=st.integers(1, 100))
def test_plain_values_are_read_unchanged(parse, values, chunk_bytes):
    user, name, queue = values

    parsed = parse(
        f"{HEAD}user={user} jobname={name} queue={queue} {TIMES}", chunk_bytes=chunk_bytes
    )

    assert parsed.table.select("user", "name", "queue").rows() == [(user, name, queue)]


@pytest.mark.parametrize("prefix", ["20240502:", "20240502:17:", "20240502-", "pbs01: "])
def test_the_prefix_of_grep_or_pdsh_is_ignored(parse, prefix):
    parsed = parse(f"{prefix}{HEAD}user=alice {TIMES}", f"{prefix}{HEAD}user=bob {TIMES}")

    assert parsed.table["user"].to_list() == ["alice", "bob"]
    assert parsed.table["batch_id"].to_list() == ["7001", "7001"]


def test_vnodes_of_a_host_are_one_node(parse):
    vnodes = "exec_vnode=(c1[0]:ncpus=1+c1[1]:ncpus=1)+(c2[0]:ncpus=2)"

    [row] = parse(f"{HEAD}user=alice {TIMES} {vnodes}").table.to_dicts()

    assert (row["nodes"], row["node_count"], row["core_count"]) == ("c[1-2]", 2, 4)
