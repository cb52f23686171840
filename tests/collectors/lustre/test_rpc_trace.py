import io
import random
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from collectors import tables
from collectors.lustre import rpc_exact, rpc_plain, rpc_repeats, rpc_trace
from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.parsed import Account, SourceUnavailable
from collectors.source import Source
from tests.properties import examples

FIXTURES = Path(__file__).parents[2] / "fixtures" / "lustre_rpctrace"
REPOSITORY = Path(__file__).parents[3]
SAMPLE = "shared/samples/lustre_rpctrace/hpdd-discuss_2011_ost_io.txt"

HEADER = (
    "00000100:00100000:5.0:1441096201.004512:0:17344:0:"
    "(service.c:2114:ptlrpc_server_handle_request()) "
)
LABEL = "pname:cluuid+ref:pid:xid:nid:opc"
CLIENT = "0f1c2d3e-1111-2222-3333-444455556666+24:9121"
TAIL = " Request procesed in 143us (171us total) trans 0 rc 301/301"

ENQUEUE = (
    f"{HEADER}Handled RPC {LABEL} mdt00_003:{CLIENT}:x1510963712345678:12345-4217@gni:101{TAIL}"
)
CLOSE = (
    f"{HEADER}Handled RPC {LABEL} mdt_rdpg01_002:{CLIENT}:x1510963712345679:12345-4217@gni:35{TAIL}"
)
WITH_JOB = (
    "00000100:00100000:5.0:1709549163.112233:0:17344:0:"
    "(service.c:2441:ptlrpc_server_handle_request()) "
    f"Handled RPC req@00000000a1b2c3d4 {LABEL}:job mdt_rdpg01_002:{CLIENT}:x1790963712345678:"
    "12345-10.1.2.3@o2ib1:35:1234567 Request processed in 61us (88us total) trans 0 rc 0/0"
)
NO_HEADER = "no debug-log header: expected the output of lctl dk or lctl debug_file"
HANDLING = ENQUEUE.replace("Handled", "Handling").removesuffix(TAIL)


def log(*lines, newline="\n"):
    return "".join(line + newline for line in lines).encode()


def parse(text, chunk_bytes=1 << 25, repeats=None):
    """Parse a log; return its windows added up, its rejects and its account."""
    parts = list(rpc_trace.parse(Source(io.BytesIO(text), "a log", chunk_bytes), repeats))
    table = pl.concat([tables.RPC_WINDOWS.empty(), *(part.table for part in parts)])
    rejects = pl.concat([tables.REJECTS.empty(), *(part.rejects for part in parts)])
    return added_up(table), rejects, sum((part.account for part in parts), Account())


def added_up(table):
    """Merge rows with the same key, as all consumers of the table do."""
    sums = ("count", "timed", "service_us_sum", "total_us_sum")
    return (
        table.group_by("start", "nid", "job", "service", "opcode")
        .agg(
            pl.col(*sums).sum(),
            pl.col("service_us_min", "queue_us_min").filter(pl.col("timed") > 0).min().fill_null(0),
            pl.col("service_us_max", "queue_us_max", "last").max(),
            pl.col("first").min(),
        )
        .select(table.columns)
        .sort(pl.all())
    )


def test_an_rpc_becomes_a_window():
    table, rejects, account = parse(log(ENQUEUE))

    assert table.row(0, named=True) == {
        "start": datetime(2015, 9, 1, 8, 30, 0, tzinfo=UTC),
        "nid": "4217@gni",
        "job": "",
        "service": "mdt",
        "opcode": 101,
        "count": 1,
        "timed": 1,
        "service_us_sum": 143,
        "service_us_min": 143,
        "service_us_max": 143,
        "queue_us_min": 28,
        "queue_us_max": 28,
        "total_us_sum": 171,
        "first": datetime(2015, 9, 1, 8, 30, 1, 4512, tzinfo=UTC),
        "last": datetime(2015, 9, 1, 8, 30, 1, 4512, tzinfo=UTC),
    }
    assert table.schema == tables.RPC_WINDOWS.columns
    assert rejects.is_empty()
    assert account == Account(lines=1, accepted=1)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(ENQUEUE, ("4217@gni", "", "mdt", 101, 1), id="2.0 to 2.11"),
        pytest.param(
            ENQUEUE.replace("procesed", "processed"), ("4217@gni", "", "mdt", 101, 1), id="2.12"
        ),
        pytest.param(WITH_JOB, ("10.1.2.3@o2ib1", "1234567", "mdt_rdpg", 35, 1), id="2.13 to 2.17"),
        pytest.param(
            ENQUEUE.removesuffix(TAIL), ("4217@gni", "", "mdt", 101, 0), id="1.8: no timing tail"
        ),
        pytest.param(
            WITH_JOB.replace("35:1234567", "35:"),
            ("10.1.2.3@o2ib1", "", "mdt_rdpg", 35, 1),
            id="empty job id",
        ),
        pytest.param(
            WITH_JOB.replace("35:1234567", "35:SLURM_JOB10:0:host"),
            ("10.1.2.3@o2ib1", "SLURM_JOB10:0:host", "mdt_rdpg", 35, 1),
            id="job id with colons",
        ),
        pytest.param(
            WITH_JOB.replace("35:1234567", "35:my job"),
            ("10.1.2.3@o2ib1", "my job", "mdt_rdpg", 35, 1),
            id="job id with a blank",
        ),
        pytest.param(
            WITH_JOB.replace("10.1.2.3@o2ib1", "2001:db8::10@tcp"),
            ("2001:db8::10@tcp", "1234567", "mdt_rdpg", 35, 1),
            id="IPv6 with a job id",
        ),
        pytest.param(
            ENQUEUE.replace("4217@gni", "2001:db8::10@tcp"),
            ("2001:db8::10@tcp", "", "mdt", 101, 1),
            id="IPv6",
        ),
        pytest.param(
            ENQUEUE.replace("4217@gni", "1f@<7:2>"),
            ("1f@<7:2>", "", "mdt", 101, 1),
            id="unknown LND",
        ),
        pytest.param(
            ENQUEUE.replace("12345-4217@gni", "U77-4217@gni"),
            ("4217@gni", "", "mdt", 101, 1),
            id="client in user space",
        ),
        pytest.param(
            ENQUEUE.replace(CLIENT, "0+-99:-1"), ("4217@gni", "", "mdt", 101, 1), id="no export yet"
        ),
        pytest.param(
            WITH_JOB.replace("req@00000000a1b2c3d4", "req@(____ptrval____)"),
            ("10.1.2.3@o2ib1", "1234567", "mdt_rdpg", 35, 1),
            id="pointer not printed",
        ),
        pytest.param(
            ENQUEUE.replace("(service.c", "(..service.c"),
            ("4217@gni", "", "mdt", 101, 1),
            id="indented",
        ),
        pytest.param(
            ENQUEUE.replace(":5.0:", ":113.1F:"),
            ("4217@gni", "", "mdt", 101, 1),
            id="first of its buffer",
        ),
        pytest.param(
            ENQUEUE.replace(":101 ", ":9999 "),
            ("4217@gni", "", "mdt", 9999, 1),
            id="unknown opcode",
        ),
        pytest.param(
            ENQUEUE.replace("301/301", "-2/-999"), ("4217@gni", "", "mdt", 101, 1), id="errors"
        ),
        pytest.param(ENQUEUE + "\r", ("4217@gni", "", "mdt", 101, 1), id="CRLF"),
    ],
)
def test_records_of_all_versions_are_accepted(line, expected):
    table, rejects, account = parse(log(line))

    assert table.select("nid", "job", "service", "opcode", "timed").rows() == [expected]
    assert rejects.is_empty()
    assert account == Account(lines=1, accepted=1)


@pytest.mark.parametrize(
    ("thread", "service"),
    [
        ("mdt00_003", "mdt"),
        ("mdt_rdpg01_002", "mdt_rdpg"),
        ("mdt_io00_007", "mdt_io"),
        ("mdt_seqs_0000", "mdt_seqs"),
        ("ll_mgs_0002", "ll_mgs"),
        ("ll_ost_io_126", "ll_ost_io"),
        ("ll_ost_io01_003", "ll_ost_io"),
        ("ll_ost_create00", "ll_ost_create"),  # the kernel truncates thread names
        ("ldlm_cn00_001", "ldlm_cn"),
        ("ll_mdt_rdpg_1234", "ll_mdt_rdpg"),
    ],
)
def test_the_service_is_the_base_of_the_thread_name(thread, service):
    table, _, _ = parse(log(ENQUEUE.replace("mdt00_003", thread)))

    assert table["service"].to_list() == [service]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("", id="blank"),
        pytest.param("\r", id="blank with CR"),
        pytest.param("  and the second line of a message", id="continuation"),
        pytest.param("Debug log: 12 lines, 12 kept, 0 dropped, 0 bad.", id="trailer"),
        pytest.param(HANDLING, id="start of handling"),
        pytest.param(HEADER + "ldlm_lock_addref(ns)", id="another record"),
        pytest.param(
            HEADER
            + "Completed RPC pname:cluuid:pid:xid:nid:opc sh:lustre-MDT0000:9:15:10.0.0.1@tcp:101",
            id="a client's record",
        ),
    ],
)
def test_other_lines_are_irrelevant(line):
    table, rejects, account = parse(log(ENQUEUE, line, CLOSE))

    assert table["count"].to_list() == [1, 1]
    assert rejects.is_empty()
    assert account == Account(lines=3, accepted=2, irrelevant=1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("A line about Handled RPC", NO_HEADER),
        (ENQUEUE.removeprefix(HEADER), NO_HEADER),
        (f"Jul  5 12:00:00 mds1 kernel: Lustre: 17344:0:{ENQUEUE}", NO_HEADER),
        (f"kernel: Lustre: 17344:0:{ENQUEUE.partition('344:0:')[2]}", NO_HEADER),
        ("00000100:00100000:5 Handled RPC", "header ends in the CPU"),
        ("00000100:00100000:5" + ENQUEUE, "header ends in the time"),
        ("00000100:00100000:5.0:1441096201.0045" + ENQUEUE, "header ends in the time"),
        (f"{HEADER[:46]}Handled RPC", "header ends in the thread numbers"),
        (ENQUEUE.replace(":2114:", ":"), "no field names"),
        (
            ENQUEUE.replace("Handled", "Handling").replace("(serv", "(Handled RPC serv"),
            'message does not begin with "Handled RPC"',
        ),
        (ENQUEUE.replace("mdt00_003", "m" * 17), "no thread name"),
        (ENQUEUE.replace("mdt00_003", ""), "no thread name"),
        (ENQUEUE.replace(":opc ", ":o"), "no field names"),
        (f"{HEADER}Handled RPC {LABEL} mdt00_003:0f1c2d3e-1111", "no client"),
        (f"{HEADER}Handled RPC {LABEL} mdt00_003:{CLIENT}", "no client pid"),
        (f"{HEADER}Handled RPC {LABEL} mdt00_003:{CLIENT}:x15109637", "no xid"),
        (f"{HEADER}Handled RPC {LABEL} mdt00_003:{CLIENT}:x15:12345-42", "no NID"),
        (f"{HEADER}Handled RPC {LABEL} mdt00_003:{CLIENT}:x15:12345-42@gni:", "no opcode"),
        (ENQUEUE[:-9], "unreadable after the opcode"),
        (ENQUEUE.replace(":101 ", ":101:7 "), "job id without a field name"),
        (ENQUEUE.replace("143us", "us"), "unreadable after the opcode"),
        (ENQUEUE.replace("1441096201", "4294967296"), "time before 2001 or in the future"),
        (ENQUEUE.replace("1441096201", "0999999999"), "time before 2001 or in the future"),
        (ENQUEUE.replace("1441096201", "9" * 30), "time before 2001 or in the future"),
        (ENQUEUE.replace(":101 ", ":32768 "), "opcode out of range (0 to 32767)"),
        (ENQUEUE.replace(":101 ", ":-1 "), "opcode out of range (0 to 32767)"),
        (WITH_JOB.replace(":35:", ":-32768:"), "opcode out of range (0 to 32767)"),
        (ENQUEUE.replace(":101 ", f":{2**64} "), "opcode out of range (0 to 32767)"),
        (WITH_JOB.replace(":35:1234567", ":35"), "no job id"),
        (WITH_JOB.replace(":35:1234567", ":35:" + "j" * 32), "job id too long"),
        (WITH_JOB[: WITH_JOB.index(" trans")], "timing tail truncated"),
    ],
)
def test_a_damaged_record_is_rejected_and_its_neighbours_survive(line, reason):
    table, rejects, account = parse(log(ENQUEUE, line, CLOSE))

    assert table["count"].to_list() == [1, 1]
    assert rejects.rows() == [(2, line, reason)]
    assert account == Account(lines=3, accepted=2, rejected=1)


@pytest.mark.parametrize("line", [ENQUEUE, WITH_JOB])
def test_a_truncated_last_line_never_becomes_another_rpc(line):
    whole, _, _ = parse(log(line))

    for length in range(1, len(line), 3):
        table, rejects, account = parse(line[:length].encode())
        claims = "Handled RPC" in line[:length]

        assert account == Account(1, len(table), len(rejects), int(not claims))
        assert table.is_empty() or table.equals(whole)


@pytest.mark.parametrize(
    ("service_us", "total_us", "timed"),
    [
        pytest.param(0, 0, 1, id="zero"),
        pytest.param(86_400_000_000, 86_400_000_000, 1, id="a day"),
        pytest.param(5, 86_400_000_001, 0, id="more than a day"),
        pytest.param(-5, 10, 0, id="clock set back while handling"),
        pytest.param(50, 10, 0, id="service time above total time"),
        pytest.param(5, 10**30, 0, id="beyond 64 bits"),
    ],
)
def test_rpcs_with_implausible_times_are_counted_but_not_timed(service_us, total_us, timed):
    line = ENQUEUE.replace("143us (171us", f"{service_us}us ({total_us}us")

    table, _, account = parse(log(line))

    assert table.select("count", "timed").rows() == [(1, timed)]
    assert table["total_us_sum"].to_list() == [total_us * timed]
    assert account == Account(lines=1, accepted=1)


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 25])  # a line or all
@pytest.mark.parametrize(
    ("job", "read_as"),
    [
        pytest.param("77\n", "77?", id="at its end"),
        pytest.param("\n" * 31, "?" * 31, id="longest"),
        pytest.param("a b\r\nc\n\rd", "a b?c?\rd", id="with carriage returns"),
        pytest.param(f"7\n{WITH_JOB[:28]}\n", f"7?{WITH_JOB[:28]}?", id="like a header"),
        pytest.param("7\nHandled RPC", "7?Handled RPC", id="like another record"),
        pytest.param("Handled RPC\nHandled RPC\n", "Handled RPC?Handled RPC?", id="like several"),
    ],
)
def test_line_breaks_in_a_job_id_are_read_as_question_marks(job, read_as, chunk_bytes):
    record = WITH_JOB.replace(":1234567 ", f":{job} ")

    table, rejects, account = parse(log(ENQUEUE, record, CLOSE), chunk_bytes)

    read = table.sort("start", "opcode").select("job", "opcode", "timed").rows()
    assert read == [("", 35, 1), ("", 101, 1), (read_as, 35, 1)]
    assert rejects.is_empty()
    assert account == Account(3 + job.count("\n"), accepted=3, irrelevant=job.count("\n"))


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 25])
@pytest.mark.parametrize(
    "between",
    [pytest.param([HANDLING], id="another record"), pytest.param([""] * 31, id="too many lines")],
)
def test_a_record_without_a_timing_tail_does_not_take_a_later_one(between, chunk_bytes):
    table, _, account = parse(log(ENQUEUE.removesuffix(TAIL), *between, TAIL), chunk_bytes)

    assert table.select("count", "timed").rows() == [(1, 0)]
    assert account == Account(len(between) + 2, accepted=1, irrelevant=len(between) + 1)


def test_windows_are_ten_seconds_by_nid_job_service_and_opcode():
    text = log(
        ENQUEUE,
        ENQUEUE.replace("201.004512", "209.999999").replace("143us (171us", "100us (900us"),
        ENQUEUE.replace("201.004512", "210.000000"),
        ENQUEUE.replace("4217@", "4218@"),
        ENQUEUE.replace("mdt00", "mdt_io00").replace("x15", "x16"),
        CLOSE,
    )

    table, _, _ = parse(text)

    assert table.height == 5
    first = table.row(by_predicate=pl.col("count") == 2, named=True)
    assert first["service_us_sum"] == 243
    assert (first["service_us_min"], first["service_us_max"]) == (100, 143)
    assert (first["queue_us_min"], first["queue_us_max"]) == (28, 800)
    assert first["last"] == datetime(2015, 9, 1, 8, 30, 9, 999_999, tzinfo=UTC)


def test_nul_and_invalid_utf8_are_replaced():
    text = log(ENQUEUE, WITH_JOB).replace(b"1234567 ", b"a\xff\x00\xe2\x82b ")

    table, rejects, account = parse(text)

    assert table["job"].to_list() == ["", "a\ufffd\ufffd\ufffdb"]
    assert rejects.is_empty()
    assert account == Account(lines=2, accepted=2)


def moved(line, step):
    """Return the client's next RPC, `step` microseconds later."""
    seconds, micros = divmod(1441096201_004512 + step, 1_000_000)
    return line.replace("1441096201.004512", f"{seconds}.{micros:06d}").replace(
        "x1510963712345678", f"x{1510963712345678 + step}"
    )


RPCS = [moved(ENQUEUE, step) for step in range(0, 20_000_000, 1_000_000)]


@pytest.mark.parametrize("chunk_bytes", [1, 700, 1 << 20])  # one part or several
@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([*RPCS, *RPCS], id="one after the other"),
        pytest.param([*RPCS[:15], *RPCS[5:]], id="overlapping"),
        pytest.param([line for line in RPCS for _ in range(2)], id="side by side"),
        pytest.param(
            [*RPCS, *(line.replace("+24:", "+25:") for line in RPCS)], id="other reference"
        ),
        pytest.param([*RPCS, *(line.replace("(serv", "(.serv") for line in RPCS)], id="other path"),
    ],
)
def test_records_dumped_twice_count_once(lines, chunk_bytes):
    table, rejects, account = parse(log(*lines), chunk_bytes)

    assert table["count"].sum() == len(RPCS)
    assert rejects.is_empty()
    assert account == Account(len(lines), accepted=len(RPCS), irrelevant=len(lines) - len(RPCS))


@pytest.mark.parametrize(
    ("old", "new"),
    [("4217@", "4218@"), ("x15", "x16"), (":101 ", ":102 "), ("201.004512", "201.004513")],
)
def test_records_with_another_nid_xid_opcode_or_time_are_distinct(old, new):
    _, _, account = parse(log(ENQUEUE, ENQUEUE.replace(old, new)))

    assert account.accepted == 2


def test_records_repeated_in_another_file_of_the_server_count_once():
    repeats = RepeatedRecords()
    files = [log(*RPCS[:12]), log(*RPCS[8:])]
    parsers = [rpc_trace.parse(Source(io.BytesIO(text), "a log", 600), repeats) for text in files]
    accepted = 0
    while parsers:  # callers interleave by time; alternating is enough here
        for parser in list(parsers):
            part = next(parser, None)
            if part is None:
                parsers.remove(parser)
            else:
                accepted += part.account.accepted

    assert accepted == len(RPCS)


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(rpc_trace, "PART_CHUNKS", 1)


@pytest.mark.long
def test_records_are_remembered_for_a_minute(small_parts):
    hour = [moved(ENQUEUE, step) for step in range(0, 3_600_000_000, 1_000_000)]
    repeats = RepeatedRecords()

    parse(log(*hour), chunk_bytes=3_000, repeats=repeats)

    assert 60 <= repeats.remembered <= 80
    assert parse(log(hour[-1]), repeats=repeats)[2] == Account(lines=1, irrelevant=1)


def test_the_number_of_remembered_records_is_bounded(small_parts, monkeypatch):
    monkeypatch.setattr(rpc_repeats, "RECORDS", 50)
    repeats = RepeatedRecords()
    lines = [moved(ENQUEUE, step) for step in range(1_000)]

    parse(log(*lines), chunk_bytes=3_000, repeats=repeats)

    assert repeats.remembered <= 50


# The sums of regular lines, computed independently of the parser.
AWK = r"""
/Handled RPC .* rc -?[0-9]+\/-?[0-9]+$/ {
    split($0, tail, / Request process?ed in |us \(|us total\)/)
    timed++
    service_us += tail[2]
    total_us += tail[3]
}
END { printf "%d %d %d", timed, service_us, total_us }
"""


def counted_by(command, text):
    """Return the numbers that an independent tool prints for a text."""
    done = subprocess.run(command, input=text, capture_output=True, check=True)
    return [int(number) for number in done.stdout.split()]


@pytest.mark.parametrize(
    ("name", "rejected", "repeated"),
    [("oss_1.8.log", 0, 0), ("mds_2.5.log", 0, 1), ("mds_2.15.log", 1, 0)],
)
def test_counts_agree_with_grep_and_awk(name, rejected, repeated):
    text = (FIXTURES / name).read_bytes()
    distinct = b"".join(dict.fromkeys(text.splitlines(keepends=True)))

    table, rejects, account = parse(text, chunk_bytes=2_000)

    assert [account.accepted + len(rejects) + repeated] == counted_by(
        ["grep", "-c", "Handled RPC"], text
    )
    assert (account.rejected, account.accepted) == (rejected, table["count"].sum())
    assert account.lines == text.count(b"\n")
    assert [
        table[name].sum() for name in ("timed", "service_us_sum", "total_us_sum")
    ] == counted_by(["awk", AWK], distinct)


def test_a_real_log_of_2011_is_parsed():
    path = next(
        (folder / SAMPLE for folder in REPOSITORY.parents if (folder / SAMPLE).exists()),
        None,
    )
    if path is None:
        pytest.skip("shared/samples/lustre_rpctrace is not present")

    table, rejects, account = parse(path.read_bytes())

    assert table.select("nid", "service", "opcode", "count", "timed").rows() == [
        ("0@lo", "ll_ost_io", 10, 1, 0)
    ]
    assert rejects.is_empty()
    assert account == Account(lines=2, accepted=1, irrelevant=1)


ARCHIVES = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")

# Hostile input: records of all versions, mutated records and random bytes.
RECORDS = [
    ENQUEUE,
    CLOSE,
    WITH_JOB,
    HANDLING,
    ENQUEUE.removesuffix(TAIL),
    ENQUEUE.replace("procesed", "processed"),
    ENQUEUE.replace("(service", "(.service"),
    ENQUEUE.replace("4217@gni", "2001:db8::10@tcp"),
    ENQUEUE.replace(CLIENT, "0+-99:0"),
    ENQUEUE.replace("143us (171us", "171us (143us"),
    ENQUEUE.replace(":101 ", ":-1 "),
    ENQUEUE.replace(":101 ", ":32768 "),
    WITH_JOB.replace(":35:", ":-1:"),
    WITH_JOB.replace(":1234567 ", ": "),
    WITH_JOB.replace(":1234567 ", ":a:b c:d "),
    WITH_JOB.replace(":1234567 ", ":77\n "),
    WITH_JOB.replace(":1234567 ", ":Handled RPC\n\r\nHandled RPC "),
    WITH_JOB.replace("10.1.2.3@o2ib1", "2001:db8::10@tcp"),
    "second line of a message",
    "",
]
whole_lines = st.builds(
    lambda line, step: moved(line, step).encode(),
    st.sampled_from(RECORDS),
    st.integers(0, 15_000_000),
)


@st.composite
def changed_lines(draw):
    line = bytearray(draw(whole_lines))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(line)))
        end = start + draw(st.sampled_from([0, 1, 1, 1, 2, 10, 100]))
        line[start:end] = draw(
            st.one_of(
                st.sampled_from(
                    [b"", b":", b" ", b"0", b"-", b"@", b"x", b"\r", b"\n", b"\0", b"\xff"]
                ),
                st.sampled_from(
                    [b"9" * 25, b"Handled RPC", ":é".encode(), b'"', b",", b"us (", b"+"]
                ),
                st.binary(max_size=4),
            )
        )
    return bytes(line)


texts = st.builds(
    lambda lines, plain, newline, end: newline.join([*lines, *[ENQUEUE.encode()] * plain]) + end,
    st.lists(st.one_of(whole_lines, changed_lines(), st.binary(max_size=80)), max_size=8),
    st.integers(0, 2),  # last lines: the fast path skips the last line of a chunk
    st.sampled_from([b"\n", b"\n", b"\r\n"]),
    st.sampled_from([b"\n", b""]),
).filter(lambda text: not text.startswith(ARCHIVES))


def parse_exactly(text, chunk_bytes):
    """Parse with the exact path only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rpc_trace, "read_plain", none_is_plain)
        return parse(text, chunk_bytes)


def none_is_plain(*arguments):
    newlines, plain = rpc_plain.read_plain(*arguments)
    numbers = {name: field[:0] for name, field in plain.numbers.items()}
    return newlines, rpc_plain.Plain(numbers, plain.names)


@pytest.mark.long
@settings(max_examples=examples(200))
@given(text=texts, chunk_bytes=st.sampled_from([1, 300, 1_000, 1 << 20]))
def test_fast_and_exact_path_agree_on_any_text_and_chunks(text, chunk_bytes):
    table, rejects, account = parse(text, chunk_bytes)
    exact_table, exact_rejects, exact_account = parse_exactly(text, 1 << 20)

    assert_frame_equal(table, exact_table)
    assert_frame_equal(rejects, exact_rejects)
    assert account == exact_account


PLAIN = [
    ENQUEUE,
    CLOSE,
    ENQUEUE.replace("4217@gni", "10.123.123.101@o2ib1"),
    WITH_JOB,
    WITH_JOB.replace(":1234567 ", ": "),
    WITH_JOB.replace(":1234567 ", ":bash:1000:n01 "),
]
EDITS = (
    *"0123456789:@-+_./xus \r\N{REPLACEMENT CHARACTER}",
    "us (",
    "Handled RPC",
    "12345-",
    "99999999",
)


def damaged(line, random_):
    """Return a line with up to two edits: replaced, inserted or deleted characters."""
    for _ in range(random_.randrange(3)):
        start = random_.randrange(len(line))
        end = start + random_.choice([0, 1, 1, 1, 5])
        line = line[:start] + random_.choice(["", *EDITS]) + line[end:]
    return line


@pytest.mark.parametrize("first", [ENQUEUE, WITH_JOB])
def test_fast_and_exact_path_agree_on_damaged_lines(first):
    random_ = random.Random(7)  # noqa: S311  (no secret)
    texts = [first, *(damaged(random_.choice(PLAIN), random_) for _ in range(5_000)), first]
    lines = pl.DataFrame({"line": range(1, len(texts) + 1), "text": texts}).with_columns(
        pl.col("text").str.strip_suffix("\r"),
        ended=pl.lit(True),  # noqa: FBT003  (a value)
    )

    newlines, block = rpc_plain.read_plain(log(*texts), first_line=1)
    plain = rpc_plain.records_of([block])
    exact, rejects = rpc_exact.read_exactly(
        lines.filter(pl.col("line").is_in(plain.numbers["line"].implode()))
    )

    assert len(newlines) == len(texts)
    assert len(plain.numbers) > 800
    assert rejects.is_empty()
    assert_frame_equal(plain.numbers, exact.numbers)
    assert_frame_equal(plain.names, exact.names, check_row_order=False)


@settings(max_examples=examples(100))
@given(text=texts)
def test_the_account_covers_every_line(text):
    _, rejects, account = parse(text)

    assert account.lines == text.count(b"\n") + (text[-1:] not in (b"", b"\n"))
    assert account.lines == account.accepted + account.rejected + account.irrelevant
    assert account.rejected == len(rejects)


@given(content=st.binary(max_size=2_000))
def test_random_bytes_raise_only_the_declared_error(content):
    try:
        _, _, account = parse(content)
    except SourceUnavailable:
        assert content.startswith(ARCHIVES)
    else:
        assert account.lines == content.count(b"\n") + (content[-1:] not in (b"", b"\n"))
