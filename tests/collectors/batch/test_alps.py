from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import tables
from collectors.batch import alps, hostlists
from collectors.parsed import Account

APRUN = "<150>1 2016-07-10T00:06:20.261556+01:00 c2-1c0s0n1 aprun 2035 p0-2016 [alps_msgs@34] "
UNKNOWN_NODES = "the line is cut before the end of node_list: nodes unknown"


def start(node_list="22-23", num_nodes=2, command="aprun ./a.out", apid="9205593"):
    return (
        f"{APRUN}apid={apid}, Starting, user=15269, batch_id=3815975.sdb, "
        f'cmd_line="{command} ", num_nodes={num_nodes}, node_list={node_list}, cwd="/fs3/alice"'
    )


@pytest.fixture(scope="session")
def parse(source, whole):
    def run(*lines, chunk_bytes=1 << 20):
        return whole(alps.parse(source(*lines, chunk_bytes=chunk_bytes)))

    return run


@pytest.fixture
def messages(parse, fixture_text):
    return parse(fixture_text("alps", "messages.txt"))


def launch(parsed, apid):
    return parsed.table.filter(pl.col("launch") == apid).to_dicts()


def test_starts_and_ends_of_launches_are_rows(messages):
    began, ended = launch(messages, "9205593")

    assert messages.table.schema == tables.LAUNCHES.columns
    assert began == {
        "line": 1,
        "launch": "9205593",
        "batch_id": "3815975",
        "array_index": "",
        "uid": 15_269,
        "started_at": datetime(2016, 7, 9, 23, 6, 20, 261_556, UTC),
        "ended_at": None,
        "node_count": 8,
        "nodes": "nid[02258-02259,02263,02322,02991,03005-03006,03016]",
        "command": "/opt/cray/alps/bin/aprun -n 192 /work/alice/vasp_ncl",
        "exit_status": None,
        "exit_signal": None,
    }
    assert ended == {
        "line": 2,
        "launch": "9205593",
        "batch_id": "3815975",
        "array_index": "",
        "uid": 15_269,
        "started_at": None,
        "ended_at": datetime(2016, 7, 9, 23, 20, 21, 291_116, UTC),
        "node_count": None,
        "nodes": "",
        "command": "",
        "exit_status": 0,
        "exit_signal": 0,
    }


def test_commands_may_hold_commas_quotes_and_several_binaries(messages):
    began, ended = launch(messages, "9205594")

    assert began["command"] == (
        '/opt/cray/alps/bin/aprun -n 40 ./a.out --grid 1,2,3 -e X="y" : -n 1 ./io, all'
    )
    assert (began["batch_id"], began["array_index"]) == ("3813206", "16")
    assert (began["nodes"], began["node_count"]) == ("nid[00022-00023]", 2)
    assert (ended["exit_status"], ended["exit_signal"]) == (137, 9)


def test_a_launch_outside_any_job_has_no_batch_id(messages):
    began, ended = launch(messages, "9205595")

    assert (began["batch_id"], began["nodes"]) == ("", "nid00042")
    assert (ended["batch_id"], ended["exit_status"], ended["exit_signal"]) == ("", None, None)


def test_times_are_read_with_their_offset(messages):
    began, ended = launch(messages, "9205598")

    assert began["started_at"] == datetime(2016, 10, 30, 1, 50, tzinfo=UTC)
    assert ended["ended_at"] == datetime(2016, 10, 30, 1, 5, tzinfo=UTC)


def test_other_lines_are_irrelevant(messages):
    assert messages.account == Account(lines=13, accepted=8, rejected=1, irrelevant=4)


def test_a_node_list_of_wrong_length_is_rejected(messages):
    assert messages.rejects.select("line", "reason").rows() == [
        (11, "num_nodes is 3, but node_list has 2")
    ]


def test_a_line_cut_before_the_end_of_its_node_list_is_rejected(parse, fixture_text):
    parsed = parse(fixture_text("alps", "cut.txt"))

    assert parsed.rejects.select("line", "reason").rows() == [
        (1, "the line is cut inside its header"),
        (2, "the line is cut before the event"),
        (3, "the line is cut before the event"),
        (4, UNKNOWN_NODES),
        (5, UNKNOWN_NODES),
        (6, UNKNOWN_NODES),
        (7, UNKNOWN_NODES),
        (12, "the line does not begin like a syslog record of aprun or apsys"),
    ]


def test_a_line_cut_after_its_node_list_is_accepted(parse, fixture_text):
    began, *_ = parse(fixture_text("alps", "cut.txt")).table.to_dicts()

    assert (began["line"], began["nodes"]) == (8, "nid[02258,02263]")


def test_values_that_may_be_cut_are_ignored(parse, fixture_text):
    _, *ends = parse(fixture_text("alps", "cut.txt")).table.to_dicts()

    assert [(end["line"], end["batch_id"], end["exit_status"]) for end in ends] == [
        (9, "", None),
        (10, "3815975", None),
        (11, "3815975", None),
    ]


@given(cut=st.integers(0, len(start("2258-2259,2263", 3))))
def test_a_cut_start_has_all_its_nodes_or_is_no_row(parse, cut):
    parsed = parse(start("2258-2259,2263", 3)[:cut])

    nodes = parsed.table["nodes"].to_list() if parsed.account.accepted else []
    assert nodes in ([], ["nid[02258-02259,02263]"])


def test_a_command_with_a_node_list_is_rejected(parse):
    fake = './a.out ", num_nodes=1, node_list=7, cwd="/" '

    parsed = parse(start(command=fake))

    assert parsed.rejects["reason"].to_list() == [
        "the line has more than one node_list: nodes unknown"
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (start(apid="none"), "apid 'none' is not a whole number"),
        (start(node_list="10000-99999999"), "the host list names 99990000 hosts, more than 200000"),
        (start(node_list="3-1"), "[00003-00001] is not a range of hosts"),
        (start(node_list="1--3"), "'nid[00001--00003]' is not a host list"),
        (start().replace("+01:00", ""), "time 2016-07-10T00:06:20.261556 has no offset from UTC"),
        (
            start().replace("2016-07", "2016-13"),
            "time '2016-13-10T00:06:20.261556+01:00' is not a time",
        ),
        (start().replace("3815975.sdb", "sdb"), "job id 'sdb' is not a number with an optional"),
    ],
)
def test_a_bad_value_rejects_its_line(parse, line, reason):
    [rejection] = parse(line).rejects["reason"].to_list()

    assert rejection.startswith(reason)


def test_a_launch_on_the_whole_machine_is_read(parse):
    parsed = parse(start("0-18687", 18_688))

    assert parsed.table["nodes"].to_list() == ["nid[00000-18687]"]
    assert len(hostlists.expand("nid[00000-18687]")) == 18_688


@pytest.mark.parametrize(
    "text",
    [
        "ap_id,read_kb,read_ops\n22542623,774,2\n",
        "<142>1 2017-05-01T01:02:25.429914+01:00 c6 RUR 10858 p0 [RUR@34] uid: 1, apid: 2\n",
        "kernel: LustreError: 1: 2\n",
        "",
        "\n\n",
    ],
)
def test_other_files_are_irrelevant(parse, text):
    account = parse(text.encode()).account

    assert account == Account(lines=text.count("\n"), irrelevant=text.count("\n"))
