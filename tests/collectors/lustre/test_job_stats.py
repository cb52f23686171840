from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from collectors.lustre import job_stats
from collectors.lustre.params import BLOCK_LINES
from collectors.parsed import Account
from collectors.source import CHUNK_BYTES
from collectors.tables import COUNTERS, JOB_COUNTERS, OPERATIONS, REJECTS, TIMES
from tests.collectors.lustre.counters import FIXTURES, awk, read, row_sum, samples
from tests.properties import examples

FOLDER = FIXTURES / "lustre_job_stats"
DAMAGED = FOLDER / "damaged_2.8.txt"
SOUND = sorted(set(FOLDER.glob("*.txt")) - {DAMAGED})

SUMS = r"""
    function number(key) {
        return match($0, key ": *[0-9]+") ? substr($0, RSTART + length(key) + 1, RLENGTH) + 0 : 0
    }
    /^[A-Za-z][^ =]*=/ { relevant = /^(mdt|obdfilter)\.[^ ]*\.job_stats=/ }
    /^job_stats:/ { relevant = 1 }
    !relevant || !NF { irrelevant++ }
    !relevant { next }
    { text = text $0; if (gsub(/{/, "{", text) > gsub(/}/, "}", text)) next; $0 = text; text = "" }
    /^- job_id:/ { entries++ }
    /(samedir|crossdir|parallel|trylocks)/ { next }
    /samples:/ && /(bytes:|unit: *bytes)/ { bytes += number("sum") }
    /samples:/ && /unit: *usecs/ { times += number("sum") }
    /samples:/ && !/^ *(read|write):.*usecs/ { operations += number("samples") }
    END { printf "%d %d %.0f %.0f %.0f", irrelevant, entries, operations, bytes, times }
"""

HEADER = "job_stats:"
JOB = "- job_id:          3567126"
TIME = "  snapshot_time:   1441096201"
OPEN = "  open:            { samples:          93, unit:  reqs }"
CLOSE = "  close:           { samples:          87, unit:  reqs }"
MKNOD = "  mknod:           { samples:           4, unit:  reqs }"
CUT_CLOSE = "  close:           { samples:          8"


def text(*lines):
    return "".join(line + "\n" for line in lines).encode()


def parse(*lines, chunk_bytes=1 << 25):
    return read(job_stats, JOB_COUNTERS, text(*lines), chunk_bytes)


def only_row(*lines):
    rows, rejects, _ = parse(*lines)
    assert rejects.rows() == []
    assert rows.height == 1
    return rows.row(0, named=True)


def known(row):
    """Return the values of a row that are not null."""
    return {name: value for name, value in row.items() if value is not None}


def reasons(rejects):
    return rejects.select("line", "reason").rows()


def test_an_entry_becomes_a_row():
    row = only_row(
        "mdt.atlas-MDT0000.job_stats=",
        HEADER,
        '- job_id:          "3567126:0:nid02258"',
        "  snapshot_time:   1723114647.887515895 secs.nsecs",
        "  start_time:      1723102025.057286226 secs.nsecs",
        "  elapsed_time:    12622.830229669 secs.nsecs",
        "  open:            { samples:          93, unit: usecs, min:        7, max:       65, "
        "sum:              973, sumsq:              15000 }",
        "  statfs:          { samples:           0, unit: usecs, min:        0, max:        0, "
        "sum:                0, sumsq:                  0 }",
    )

    assert known(row) == {
        "line": 3,
        "target": "atlas-MDT0000",
        "job": "3567126:0:nid02258",
        "snapshot_at": datetime(2024, 8, 8, 10, 57, 27, 887515, tzinfo=UTC),
        "entry_started_at": datetime(2024, 8, 8, 7, 27, 5, 57286, tzinfo=UTC),
        "open": 93,
        "open_us": 973,
        "statfs": 0,
    }


def test_rows_and_rejects_have_the_declared_columns():
    rows, rejects, _ = parse(HEADER, JOB, OPEN, CUT_CLOSE)

    assert dict(rows.schema) == JOB_COUNTERS.columns
    assert dict(rejects.schema) == REJECTS.columns


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.stem)
def test_totals_of_every_version_agree_with_awk(path):
    assert_totals_agree(path)


@pytest.mark.parametrize("path", samples("lustre_job_stats") + samples("lustre_get_param"))
def test_totals_of_real_files_agree_with_awk(path):
    assert_totals_agree(path)


def assert_totals_agree(path):
    irrelevant, entries, operations, total_bytes, times = awk(SUMS, path.read_bytes())

    rows, rejects, account = read(job_stats, JOB_COUNTERS, path.read_bytes())

    assert rejects.rows() == []
    assert account.irrelevant == irrelevant
    assert rows.height == entries
    assert row_sum(rows, OPERATIONS) == operations
    assert row_sum(rows, ["read_bytes", "write_bytes"]) == total_bytes
    assert row_sum(rows, TIMES) == times


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        pytest.param("mdt_2.8.txt", {"": 5}, id="no target in a plain file"),
        pytest.param("wrapped_2.16.txt", {"scratch-OST0001": 2}, id="one target"),
        pytest.param(
            "get_param_2.12.txt",
            {"atlas-MDT0000": 3, "atlas-OST0001": 2, "atlas-OST03ef": 1},
            id="targets among other parameters, one without jobs",
        ),
        pytest.param("get_param_2.17.txt", {"scratch-MDT0000": 2}, id="empty values print nothing"),
    ],
)
def test_the_target_comes_from_the_parameter_name(name, entries):
    rows, _, _ = read(job_stats, JOB_COUNTERS, (FOLDER / name).read_bytes())

    assert dict(rows["target"].value_counts().rows()) == entries


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ["  read:            { samples: 5, unit: bytes, min:4096, max:16384, sum: 61440 }"],
            {"read": 5, "read_bytes": 61440},
            id="up to 2.5 read counts bytes",
        ),
        pytest.param(
            ["  write_bytes:     { samples: 7, unit: bytes, min:1, max:1048576, sum: 5242880 }"],
            {"write": 7, "write_bytes": 5242880},
            id="from 2.6 the requests are the samples of write_bytes",
        ),
        pytest.param(
            ["  write_bytes:     { samples: 7, unit:  reqs, min:1, max:1048576, sum: 5242880 }"],
            {"write": 7, "write_bytes": 5242880},
            id="2.11 to 2.13 call the bytes of an MDT reqs",
        ),
        pytest.param(
            [
                "  write_bytes:     { samples: 7, unit: bytes, min: 1, max: 9, sum: 42, sumsq: 9 }",
                "  write:           { samples: 7, unit: usecs, min: 65, max: 99, sum: 500 }",
            ],
            {"write": 7, "write_bytes": 42, "write_us": 500},
            id="from 2.14 write is the latency of the same requests",
        ),
        pytest.param(
            [
                "  read:            { samples: 6, unit: usecs, min: 65, max: 99, sum: 500 }",
                "  read_bytes:    { samples: 7, unit: bytes, min:1, max:9, sum: 42, hist: {} }",
            ],
            {"read": 7, "read_bytes": 42, "read_us": 500},
            id="read_bytes takes precedence",
        ),
        pytest.param(
            ["  read:            { samples: 6, unit: usecs, min: 65, max: 99, sum: 500 }"],
            {"read": 6, "read_us": 500},
            id="a latency alone counts requests but no bytes",
        ),
    ],
)
def test_reads_and_writes_are_counted_once(lines, expected):
    row = known(only_row(HEADER, JOB, *lines))

    assert {name: row[name] for name in row.keys() & set(COUNTERS)} == expected


@pytest.mark.parametrize(
    ("lines", "snapshot_at", "started_at"),
    [
        pytest.param(
            ["  snapshot_time:   1441096201"],
            datetime(2015, 9, 1, 8, 30, 1, tzinfo=UTC),
            None,
            id="up to 2.14 whole seconds of the last update",
        ),
        pytest.param(
            [
                "snapshot_time   : 912345.771933196 secs.nsecs",
                "start_time      : 901111.755494931 secs.nsecs",
                "elapsed_time    : 11234.016438265 secs.nsecs",
            ],
            None,
            None,
            id="2.15.0 and 2.15.1 print uptime",
        ),
        pytest.param(
            [
                "  snapshot_time:   1716295737.286540466 secs.nsecs",
                "  start_time:      9538.444882862 secs.nsecs",
                "  elapsed_time:    1716286198.841657604 secs.nsecs",
            ],
            datetime(2024, 5, 21, 12, 48, 57, 286540, tzinfo=UTC),
            None,
            id="a vendor mixes both clocks",
        ),
        pytest.param(
            [
                "  snapshot_time:   1716295737.000000000 secs.nsecs",
                "  start_time:      1716295700.000000000 secs.nsecs",
                "  elapsed_time:    1716286198.841657604 secs.nsecs",
            ],
            None,
            None,
            id="contradictory times are ignored",
        ),
        pytest.param(
            ["  start_time:      1716295700.000000000 secs.nsecs"],
            None,
            datetime(2024, 5, 21, 12, 48, 20, tzinfo=UTC),
            id="a single time is accepted",
        ),
        pytest.param(["  snapshot_time:   999999999999"], None, None, id="the year 33658"),
        pytest.param([], None, None, id="no time"),
    ],
)
def test_only_wall_clock_times_are_accepted(lines, snapshot_at, started_at):
    row = only_row(HEADER, JOB, *lines, OPEN)

    assert (row["snapshot_at"], row["entry_started_at"]) == (snapshot_at, started_at)


@pytest.mark.parametrize(
    ("printed", "job"),
    [
        ("9205593", "9205593"),
        ("", ""),
        ('""', ""),
        ("kworker/3:1.0", "kworker/3:1.0"),
        ("mount.lustre@0@login3.example.o", "mount.lustre@0@login3.example.o"),
        ("two words", "two words"),
        ('"SLURM_JOB10:0:login3"', "SLURM_JOB10:0:login3"),
        (r'"3567127\x3Aathena\x3a20417"', "3567127:athena:20417"),
        (r'"say\x20\x22no\x22"', 'say "no"'),
        (r'"a\x5Cx41"', r"a\x41"),
        ('"half', '"half'),
        ("{ samples: 1, unit: reqs }", "{ samples: 1, unit: reqs }"),
        (r'"bell\x07caf\xC3\xA9"', r"bell\x07caf\xC3\xA9"),
    ],
)
def test_a_job_id_is_unquoted_and_unescaped(printed, job):
    assert only_row(HEADER, f"- job_id:          {printed}", OPEN)["job"] == job


def test_nul_and_invalid_utf8_are_escaped():
    rows, rejects, _ = read(
        job_stats, JOB_COUNTERS, b"job_stats:\n- job_id: a\x00b\xff\n  \x00\xfe\n"
    )

    assert rows["job"].to_list() == [r"a\x00b\xff"]
    assert rejects["text"].to_list() == [r"  \x00\xfe"]


def test_a_text_that_resembles_a_compressed_file_is_text():
    _, _, account = parse("x^", HEADER, JOB)

    assert account == Account(lines=3, accepted=2, irrelevant=1)


def test_carriage_returns_are_removed():
    rows, rejects, _ = read(
        job_stats, JOB_COUNTERS, b"job_stats:\r\n- job_id: 7\r\n" + OPEN.encode()
    )

    assert rows["job"].to_list() == ["7"]
    assert rejects.rows() == []


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([HEADER], id="a header"),
        pytest.param(
            ["mdt.atlas-MDT0000.job_stats=job_stats:"], id="a header on the line of its name"
        ),
        pytest.param(["mdt.atlas-MDT0000.job_stats="], id="a name, from 2.17"),
        pytest.param([], id="nothing, from 2.17 without a name"),
    ],
)
def test_a_target_without_jobs_gives_no_rows(lines):
    rows, _, account = parse(*lines)

    assert rows.is_empty()
    assert account == Account(lines=len(lines), accepted=len(lines))


def test_a_dump_without_job_stats_is_irrelevant():
    rows, _, account = parse(
        "mdt.atlas-MDT0000.md_stats=",
        "snapshot_time             1561032000.104233881 secs.nsecs",
        OPEN,
        "osd-ldiskfs.atlas-MDT0000.quota_slave.acct_user=",
        "- id:      0",
        "  usage:   { inodes: 300, kbytes: 1280 }",
    )

    assert rows.is_empty()
    assert account == Account(lines=6, irrelevant=6)


def test_text_around_the_values_is_irrelevant():
    _, rejects, account = parse(
        "# lctl get_param mdt.*.job_stats",
        "mdt.atlas-MDT0000.job_stats=",
        HEADER,
        JOB,
        "",
        OPEN,
        "error: get_param: param_path 'obdfilter/*/job_stats': No such file or directory",
        "version=2.12.9",
        CLOSE,
    )

    assert rejects.rows() == []
    assert account == Account(lines=9, accepted=4, irrelevant=5)


def test_a_header_without_its_parameter_line_is_enough():
    rows, _, _ = parse("version=2.12.9", HEADER, JOB, OPEN)

    assert rows.select("target", "job", "open").rows() == [("", "3567126", 93)]


def test_a_truncated_line_is_rejected_and_its_neighbours_survive():
    rows, rejects, account = parse(HEADER, JOB, TIME, OPEN, CUT_CLOSE, MKNOD)

    assert rows.select("open", "close", "mknod").rows() == [(93, None, 4)]
    assert rejects.rows() == [(5, CUT_CLOSE, job_stats.CUT)]
    assert account == Account(lines=6, accepted=5, rejected=1, irrelevant=0)


def test_a_truncated_last_entry_keeps_its_counters():
    rows, rejects, _ = read(job_stats, JOB_COUNTERS, text(HEADER, JOB, OPEN) + CUT_CLOSE.encode())

    assert rows.select("job", "open", "close").rows() == [("3567126", 93, None)]
    assert reasons(rejects) == [(4, job_stats.CUT)]


def test_a_truncated_job_id_is_rejected():
    rows, rejects, _ = read(
        job_stats, JOB_COUNTERS, text(HEADER, JOB, OPEN) + b"- job_id:          35671"
    )

    assert rows["job"].to_list() == ["3567126"]
    assert reasons(rejects) == [(4, job_stats.NO_JOB_ID)]


def test_counters_below_an_unreadable_job_id_are_rejected():
    rows, rejects, _ = parse(HEADER, JOB, OPEN, "- job", CLOSE, "- job_id: " + "x" * 256, MKNOD)

    assert rows.select("job", "open", "close").rows() == [("3567126", 93, None)]
    assert reasons(rejects) == [(line, job_stats.NO_JOB_ID) for line in (4, 5, 6, 7)]


def test_only_damaged_lines_are_rejected():
    rows, rejects, account = read(job_stats, JOB_COUNTERS, DAMAGED.read_bytes())

    assert rows.select("line", "job", "open", "close", "mknod").rows() == [
        (2, "3567126", 4146069, None, 885),
        (20, "3567127", None, 14341, 0),
        (40, "3567128", 9471, 9459, None),
        (94, "3567130", 36983, 36962, 0),
    ]
    assert reasons(rejects) == [
        (5, "truncated before the closing brace"),
        (22, "number too large"),
        (25, "unknown counter frobnicate"),
        (44, "not a job_stats line"),
        *((line, "job_id of the entry is unreadable") for line in range(58, 76)),
        *((line, "second entry of the same target and job id") for line in range(76, 94)),
        (99, "truncated before the closing brace"),
    ]
    assert account == Account(lines=99, accepted=57, rejected=41, irrelevant=1)


def test_an_unknown_counter_is_rejected_unless_it_is_zero():
    _, rejects, account = parse(
        HEADER,
        JOB,
        "  frobnicate:      { samples:           3, unit:  reqs }",
        "  defrobnicate:    { samples:           0, unit:  reqs }",
    )

    assert reasons(rejects) == [(3, "unknown counter frobnicate")]
    assert account == Account(lines=4, accepted=2, rejected=1, irrelevant=1)


@pytest.mark.parametrize(
    "counter",
    [
        "open: { samples: 9223372036854775808, unit: reqs }",
        "open: { samples: 99999999999999999999999, unit: reqs }",
        "write_bytes: { samples: 1, unit: bytes, min:1, max:1, sum:9223372036854775808 }",
    ],
)
def test_a_number_that_is_too_large_is_rejected(counter):
    rows, rejects, _ = parse(HEADER, JOB, counter)

    assert row_sum(rows, COUNTERS) == 0
    assert reasons(rejects) == [(3, "number too large")]


def test_unused_numbers_may_have_any_size():
    row = only_row(
        HEADER,
        JOB,
        "  open:            { samples:           1, unit: usecs, min:        1, max:        1, "
        "sum:                1, sumsq: 18446744073709551615 }",
    )

    assert row["open"] == 1


def test_a_duplicate_line_of_an_entry_is_rejected():
    rows, rejects, _ = parse(HEADER, JOB, TIME, OPEN, TIME, OPEN.replace("93", "94"))

    assert rows["open"].to_list() == [93]
    assert reasons(rejects) == [(line, "duplicate line in the entry") for line in (5, 6)]


def test_all_lines_of_a_second_entry_are_rejected():
    rows, rejects, account = parse(HEADER, JOB, OPEN, "- job_id: 8", OPEN, JOB, TIME, CLOSE)

    assert rows["job"].to_list() == ["3567126", "8"]
    assert reasons(rejects) == [(line, job_stats.SECOND_ENTRY) for line in (6, 7, 8)]
    assert account == Account(lines=8, accepted=5, rejected=3, irrelevant=0)


@pytest.mark.parametrize("chunk_bytes", [16, 1_000_000])
@pytest.mark.parametrize(
    "between",
    [
        pytest.param((), id="lctl get_param -n"),
        pytest.param(("", "==> /proc/fs/lustre/mdt/lake-MDT0001/job_stats <=="), id="tail"),
    ],
)
def test_a_second_target_without_a_name_is_rejected(between, chunk_bytes):
    second = (HEADER, "- job_id: 8", TIME, OPEN)
    named = ("mdt.lake-MDT0002.job_stats=job_stats:", "mdt.lake-MDT0003.job_stats=", HEADER, JOB)
    lines = (HEADER, JOB, OPEN, *between, *second, *named, OPEN)

    rows, rejects, account = parse(*lines, chunk_bytes=chunk_bytes)

    assert rows.select("target", "job").rows() == [("", "3567126"), ("lake-MDT0003", "3567126")]
    refused = [line for line, reason in reasons(rejects) if reason == job_stats.SECOND_TARGET]
    first = 4 + len(between)
    assert refused == [*range(first, first + len(second))]
    assert account.rejected == len(second) + bool(between)


def test_a_job_id_on_two_targets_has_two_rows():
    rows, rejects, _ = parse(
        "mdt.a-MDT0000.job_stats=", HEADER, JOB, OPEN, "mdt.a-MDT0001.job_stats=", HEADER, JOB, OPEN
    )

    assert rows["target"].to_list() == ["a-MDT0000", "a-MDT0001"]
    assert rejects.rows() == []


def test_lines_above_the_first_entry_are_rejected():
    _, rejects, account = parse("mdt.a-MDT0000.job_stats=", HEADER, TIME, OPEN, "garbage")

    assert reasons(rejects) == [(line, "outside any entry") for line in (3, 4, 5)]
    assert account == Account(lines=5, accepted=2, rejected=3, irrelevant=0)


@pytest.mark.parametrize("chunk_bytes", [100, 1 << 25])
def test_the_number_of_lines_of_an_entry_is_bounded(chunk_bytes):
    rows, rejects, _ = parse(
        HEADER,
        JOB,
        OPEN,
        *["junk"] * (BLOCK_LINES - 3),
        MKNOD,
        CLOSE,
        TIME,
        chunk_bytes=chunk_bytes,
    )

    assert rows.select("open", "mknod", "close").rows() == [(93, 4, None)]
    assert reasons(rejects)[-3:] == [
        (BLOCK_LINES, "not a job_stats line"),
        (BLOCK_LINES + 2, "outside any entry"),
        (BLOCK_LINES + 3, "outside any entry"),
    ]


WRAPPED = [
    "  write_bytes:     { samples:          29, unit: bytes, min:     1080,",
    "    max:  4194304, sum:         24381408, sumsq:     51657411863296, hist: {",
    "    4K: 8, 64K: 4, 1M: 15, 4M: 2 } }",
]


def test_the_lines_of_a_wrapped_counter_are_joined():
    rows, rejects, account = parse(HEADER, JOB, OPEN, *WRAPPED, CLOSE)

    assert rows.select("open", "write", "write_bytes", "close").rows() == [(93, 29, 24381408, 87)]
    assert rejects.rows() == []
    assert account == Account(lines=7, accepted=7)


def test_only_a_wrapped_counter_without_its_last_line_is_rejected():
    rows, rejects, _ = parse(HEADER, JOB, *WRAPPED[:2], *WRAPPED, "}", CLOSE)

    assert rows.select("write_bytes", "close").rows() == [(24381408, 87)]
    assert reasons(rejects) == [
        (3, job_stats.CUT),
        (4, job_stats.CUT),
        (8, job_stats.NOT_JOB_STATS),
    ]


def test_all_lines_of_a_rejected_wrapped_counter_are_rejected():
    unknown = [line.replace("write_bytes", "frobnicated") for line in WRAPPED]

    _, rejects, account = parse(HEADER, JOB, *unknown)

    assert reasons(rejects) == [(line, "unknown counter frobnicated") for line in (3, 4, 5)]
    assert account == Account(lines=5, accepted=2, rejected=3, irrelevant=0)


def test_a_second_entry_is_recognised_across_chunks():
    rows, rejects, _ = parse(HEADER, JOB, OPEN, JOB, CLOSE, chunk_bytes=16)

    assert rows.height == 1
    assert reasons(rejects) == [(line, job_stats.SECOND_ENTRY) for line in (4, 5)]


def test_entries_across_chunks_stay_whole():
    entries = 1 + 2 * CHUNK_BYTES // len(text(JOB, TIME, OPEN, CLOSE))
    lines = [line for n in range(entries) for line in (f"- job_id: {n}", TIME, OPEN, CLOSE)]

    rows, rejects, _ = parse(*lines, chunk_bytes=CHUNK_BYTES)

    assert rows["job"].to_list() == [str(n) for n in range(entries)]
    assert rows["line"].to_list() == list(range(1, 4 * entries, 4))
    assert row_sum(rows, ["open", "close"]) == entries * (93 + 87)
    assert rejects.rows() == []


# -- properties ---------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        "mdt.a-MDT0000.job_stats=",
        "obdfilter.a-OST0001.job_stats=job_stats:",
        "mdt.a-MDT0000.exports.10.1.2.3@o2ib1.stats=",
        "version=2.12.9",
        HEADER,
        JOB,
        "- job_id:          8",
        "- job",
        "- job_id:",
        TIME,
        "start_time      : 901111.755494931 secs.nsecs",
        "  snapshot_time:   17",
        OPEN,
        CLOSE,
        CUT_CLOSE,
        MKNOD,
        *WRAPPED,
        "  frobnicate:      { samples:           3, unit:  reqs }",
        "  defrobnicate: {samples:0, unit: reqs}",
        "}",
        "",
        "   ",
        "error: get_param: failed",
        "junk",
    ]
)
TEXTS = st.tuples(
    st.lists(st.one_of(LINES, st.text(max_size=20).filter(lambda t: "\n" not in t)), max_size=40),
    st.sampled_from(["", "\n"]),
).map(lambda parts: ("\n".join(parts[0]) + parts[1]).encode())


def assert_account_covers_every_line(content, rows, rejects, account):
    lines = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    assert account.lines == lines == account.accepted + account.rejected + account.irrelevant
    assert account.rejected == rejects.height
    assert rejects["line"].is_unique().all()
    assert rows["line"].is_unique().all()


@given(st.binary(max_size=300))
@settings(max_examples=examples(50))
def test_random_bytes_never_raise(content):
    content = b"job_stats:\n- job_id: 1\n" + content

    assert_account_covers_every_line(content, *read(job_stats, JOB_COUNTERS, content))


def test_lines_after_a_second_target_have_its_reason_in_every_chunk():
    content = b"job_stats:\njob_stats:\n" + b"junk\n" * 9

    _, rejects, _ = read(job_stats, JOB_COUNTERS, content)
    _, chunked, _ = read(job_stats, JOB_COUNTERS, content, 12)

    assert rejects["reason"].unique().to_list() == [job_stats.SECOND_TARGET]
    assert_frame_equal(chunked, rejects)


@pytest.mark.long
@given(TEXTS, st.integers(1, 400))
@settings(max_examples=examples(50))
def test_chunk_boundaries_do_not_matter(content, chunk_bytes):
    rows, rejects, account = read(job_stats, JOB_COUNTERS, content)

    chunked_rows, chunked_rejects, chunked_account = read(
        job_stats, JOB_COUNTERS, content, chunk_bytes
    )

    assert_account_covers_every_line(content, rows, rejects, account)
    assert_frame_equal(chunked_rows, rows)
    assert_frame_equal(chunked_rejects, rejects)
    assert chunked_account == account


@given(TEXTS, st.integers(1, 400))
@settings(max_examples=examples(50))
def test_rejects_quote_the_numbered_line(content, chunk_bytes):
    lines = numbered(content)

    _, rejects, _ = read(job_stats, JOB_COUNTERS, content, chunk_bytes)

    for line, quoted, _ in rejects.iter_rows():
        assert quoted.strip().startswith(lines[line])  # the first line of a wrapped counter


def numbered(content):
    """Return the storable form of each line by its number."""
    lines = content.replace(b"\0", rb"\x00").decode().split("\n")
    return {number: line.strip() for number, line in enumerate(lines, start=1)}


MDT = COUNTERS[:14]
VERSIONS = {
    # version: (counters, unit, blank after "min:", form of times, escapes)
    "2.5": (("setattr", "punch", "sync"), "reqs", None, "s", False),
    "2.8": (MDT, "reqs", None, "s", False),
    "2.14": ((*MDT, "migrate"), "usecs", "", "s", False),
    "2.15.0": ((*MDT, "fallocate"), "usecs", " ", "uptime", False),
    "2.15.2": ((*MDT, "fallocate"), "usecs", " ", "ns", True),
    "2.17": ((*MDT, "rename_trylocks", "readpage"), "usecs", " ", "ns", True),
}
NUMBERS = st.integers(0, 2**53 - 1)
JOBS = st.lists(
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=31).filter(
        lambda job: "\\" not in job and '"' not in job
    ),
    unique=True,
    max_size=4,
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(10**15 + 1, 4 * 10**15).map(lambda us: EPOCH + timedelta(microseconds=us))


def printed_job(job, *, escapes):
    if not escapes:
        return job
    plain = "".join(c if c.isalnum() or c in ".@-_" else f"\\x{ord(c):02X}" for c in job)
    return job if plain == job else f'"{plain}"'


def printed_times(how, snapshot, start):
    def seconds(span):
        return f"{span // timedelta(seconds=1)}.{span.microseconds * 1000:09d} secs.nsecs"

    if how == "s":
        return [f"  snapshot_time:   {(snapshot - EPOCH) // timedelta(seconds=1)}"]
    if how == "uptime":
        return ["snapshot_time   : 912345.771933196 secs.nsecs"]
    return [
        f"  snapshot_time:   {seconds(snapshot - EPOCH)}",
        f"  start_time:      {seconds(start - EPOCH)}",
        f"  elapsed_time:    {seconds(snapshot - start)}",
    ]


def printed_counter(name, samples, unit, blank):
    sums = "" if blank is None else f", min:{blank}{1:8}, max:{blank}{9:8}, sum:{blank}{samples:16}"
    return f"  {name + ':':<16} {{ samples: {samples:11}, unit: {unit:>5}{sums} }}"


def printed_sums(names, samples, unit):
    """Return the times that `printed_counter` prints: one microsecond per operation."""
    timed = zip(names, samples, strict=True) if unit == "usecs" else ()
    return {f"{name}_us": n for name, n in timed if n and f"{name}_us" in TIMES}


@pytest.mark.long
@given(st.data(), st.sampled_from(sorted(VERSIONS)), JOBS, st.integers(1, 4000))
@settings(max_examples=examples(50))
def test_generated_output_of_any_version_is_parsed_exactly(data, version, jobs, chunk_bytes):
    names, unit, blank, how, escapes = VERSIONS[version]
    lines, expected = ["mdt.a-MDT0000.job_stats=", HEADER], []
    for job in jobs:
        snapshot, start = sorted([data.draw(MOMENTS), data.draw(MOMENTS)], reverse=True)
        samples = data.draw(st.lists(NUMBERS, min_size=len(names), max_size=len(names)))
        expected.append(
            {
                "line": len(lines) + 1,
                "target": "a-MDT0000",
                "job": job,
                "snapshot_at": {"s": snapshot.replace(microsecond=0), "ns": snapshot}.get(how),
                "entry_started_at": start if how == "ns" else None,
                **dict(zip(names, samples, strict=True)),
                **printed_sums(names, samples, unit),
            }
        )
        lines += [f"- job_id:          {printed_job(job, escapes=escapes)}"]
        lines += printed_times(how, snapshot, start)
        lines += [
            printed_counter(name, n, unit, blank) for name, n in zip(names, samples, strict=True)
        ]

    rows, rejects, account = parse(*lines, chunk_bytes=chunk_bytes)

    assert rejects.rows() == []
    assert account == Account(lines=len(lines), accepted=len(lines))
    assert_frame_equal(rows, JOB_COUNTERS.frame(expected))


def hard_wrapped(line, width):
    whole = "{" not in line
    return [line] if whole else [line[at : at + width] for at in range(0, len(line), width)]


@pytest.mark.long
@given(st.sampled_from(sorted(FOLDER.glob("get_param_*.txt"))), st.integers(40, 200))
@settings(max_examples=examples(50))
def test_hard_wrapped_counters_equal_unwrapped_counters(path, width):
    """The slow path, which joins lines, agrees with the fast path."""
    content = path.read_text()
    lines = [part for line in content.splitlines() for part in hard_wrapped(line, width)]

    rows, rejects, _ = parse(*lines)

    assert rejects.rows() == []
    whole, _, _ = read(job_stats, JOB_COUNTERS, content.encode())
    assert_frame_equal(rows.drop("line"), whole.drop("line"))
