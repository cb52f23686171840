import io
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from collectors.lustre import md_stats, stats
from collectors.lustre.params import BLOCK_LINES
from collectors.parsed import Account
from collectors.source import Source
from collectors.tables import METADATA_OPERATIONS, OPERATIONS, REJECTS, TARGET_COUNTERS, TIMES
from tests.collectors.lustre.counters import FIXTURES, awk, read, row_sum, samples
from tests.properties import examples

FOLDER = FIXTURES / "lustre_md_stats"

SUMS = r"""
    /^[A-Za-z][^ =]*=/ { relevant = /^mdt\.[^ ]*\.md_stats=/; named = 1; rows += relevant }
    !named && /^snapshot_time / { relevant = 1; rows++ }
    !relevant || !NF { irrelevant++ }
    !relevant { next }
    $1 ~ /(samedir|crossdir|parallel|trylocks)/ { next }
    $4 == "[bytes]" { bytes += $7 }
    $4 ~ /usec/ { times += $7 }
    # Since 2.15 read and write are the latency of what read_bytes and write_bytes count.
    $3 == "samples" && !($1 ~ /^(read|write)$/ && /usec/) { operations += $2 }
    END { printf "%d %d %.0f %.0f %.0f", irrelevant, rows, operations, bytes, times }
"""

NAME = "mdt.atlas-MDT0000.md_stats="
TIME = "snapshot_time             1561032000.104501442 secs.nsecs"
OPEN = "open                      39 samples [reqs]"
CLOSE = "close                     38 samples [usecs] 6 4052 2613428 116956972"
CUT_CLOSE = "close                     38 sam"


def text(*lines):
    return "".join(line + "\n" for line in lines).encode()


def parse(*lines, chunk_bytes=1 << 25):
    return read(md_stats, TARGET_COUNTERS, text(*lines), chunk_bytes)


def known(rows):
    """Return the values of the only row that are not null."""
    assert rows.height == 1
    return {name: value for name, value in rows.row(0, named=True).items() if value is not None}


def reasons(rejects):
    return rejects.select("line", "reason").rows()


def test_a_parameter_becomes_a_row():
    rows, rejects, account = parse(NAME, TIME, OPEN, CLOSE)

    assert known(rows) == {
        "line": 1,
        "target": "atlas-MDT0000",
        "snapshot_at": datetime(2019, 6, 20, 12, 0, 0, 104501, tzinfo=UTC),
        "open": 39,
        "close": 38,
        "close_us": 2613428,
    }
    assert rejects.rows() == []
    assert account == Account(lines=4, accepted=4)


def test_rows_and_rejects_have_the_declared_columns():
    rows, rejects, _ = parse(TIME, OPEN, CUT_CLOSE)

    assert dict(rows.schema) == TARGET_COUNTERS.columns
    assert dict(rejects.schema) == REJECTS.columns


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_totals_of_every_version_agree_with_awk(path):
    assert_totals_agree(path)


@pytest.mark.parametrize(
    "path", samples("lustre_stats", "*_md_stats") + samples("lustre_get_param")
)
def test_totals_of_real_files_agree_with_awk(path):
    assert_totals_agree(path)


def assert_totals_agree(path):
    irrelevant, blocks, operations, total_bytes, times = awk(SUMS, path.read_bytes())

    rows, rejects, account = read(md_stats, TARGET_COUNTERS, path.read_bytes())

    assert rejects.rows() == []
    assert account.irrelevant == irrelevant
    assert rows.height == blocks
    assert row_sum(rows, OPERATIONS) == operations
    assert row_sum(rows, ["read_bytes", "write_bytes"]) == total_bytes
    assert row_sum(rows, TIMES) == times


@pytest.mark.parametrize(
    ("lines", "snapshot_at"),
    [
        pytest.param(
            ["snapshot_time             1441096201.5 secs.usecs"],
            datetime(2015, 9, 1, 8, 30, 1, 5, tzinfo=UTC),
            id="up to 2.9 microseconds without leading zeros",
        ),
        pytest.param(
            ["snapshot_time             1441096201.000000007 secs.nsecs"],
            datetime(2015, 9, 1, 8, 30, 1, tzinfo=UTC),
            id="from 2.10 nanoseconds",
        ),
        pytest.param(
            [
                "snapshot_time             912345.415700676 secs.nsecs",
                "start_time                901111.431003807 secs.nsecs",
                "elapsed_time              11233.984696869 secs.nsecs",
            ],
            None,
            id="2.15.0 and 2.15.1 print uptime",
        ),
        pytest.param(
            [
                "snapshot_time                       1767225601.234944748 secs.nsecs",
                "start_time                          9538.681113628 secs.nsecs",
                "elapsed_time                        1767216062.553831120 secs.nsecs",
            ],
            datetime(2026, 1, 1, 0, 0, 1, 234944, tzinfo=UTC),
            id="a vendor mixes both clocks",
        ),
    ],
)
def test_only_wall_clock_times_are_accepted(lines, snapshot_at):
    rows, rejects, _ = parse(*lines, OPEN)

    assert rows["snapshot_at"].to_list() == [snapshot_at]
    assert rejects.rows() == []


@pytest.mark.parametrize("unit", ["reqs", "usec", "usecs"])
def test_operations_are_the_samples_whatever_the_unit(unit):
    rows, _, _ = parse(TIME, f"getattr {' ' * 30} 16 samples [{unit}] 1 20538 84170 1096533070")

    assert rows["getattr"].to_list() == [16]


def test_data_on_mdt_requests_are_the_samples_of_the_byte_counters():
    rows, _, _ = parse(
        TIME,
        "read                      12 samples [usecs] 18 1227 5987 107794",
        "read_bytes                12 samples [bytes] 4096 1048576 55555 60443184121664",
        "write_bytes               3 samples [bytes] 4096 4096 12288",
    )

    assert rows.select("read", "read_bytes", "write", "write_bytes").rows() == [
        (12, 55555, 3, 12288)
    ]


def test_a_value_may_follow_its_name_on_one_line():
    rows, _, account = parse(NAME + TIME, "mdt.atlas-MDT0001.md_stats=", TIME, OPEN)

    assert rows.select("line", "target", "open").rows() == [
        (1, "atlas-MDT0000", None),
        (2, "atlas-MDT0001", 39),
    ]
    assert rows["snapshot_at"].null_count() == 0
    assert account == Account(lines=4, accepted=4)


def test_a_dump_without_md_stats_is_irrelevant():
    rows, _, account = parse("mds.MDS.mdt.stats=", TIME, OPEN, "version=2.12.9")

    assert rows.is_empty()
    assert account == Account(lines=4, irrelevant=4)


def test_other_files_are_irrelevant():
    rows, _, account = parse("snapshot_time:         1589909588.327213269 (secs.nsecs)", "read")

    assert rows.is_empty()
    assert account == Account(lines=2, irrelevant=2)


def test_counters_of_another_file_are_rejected():
    _, rejects, _ = parse(TIME, OPEN, "req_qdepth                102 samples [reqs] 0 0 0 0")

    assert reasons(rejects) == [(3, "unknown counter req_qdepth")]


@pytest.mark.parametrize("name", ["connect", "reconnect", "disconnect", "ping"])
def test_statistics_of_a_client_or_target_are_rejected(name):
    rows, rejects, account = parse(TIME, OPEN, f"{name}  3 samples [reqs]")

    assert rows.is_empty()
    assert reasons(rejects) == [(line, md_stats.OTHER_STATISTICS) for line in (1, 2, 3)]
    assert account == Account(lines=3, rejected=3)


def test_a_file_of_one_client_is_rejected():
    path = "/proc/fs/lustre/mdt/lake-MDT0000/exports/10.1.2.3@o2ib1/stats"

    [part] = md_stats.parse(Source(io.BytesIO(text(TIME, OPEN)), path))
    [named] = md_stats.parse(Source(io.BytesIO(text(NAME, TIME, OPEN)), path))

    assert part.account == Account(lines=2, rejected=2)
    assert named.account == Account(lines=3, accepted=3)


def test_only_the_unknown_counter_of_a_named_md_stats_is_rejected():
    rows, rejects, _ = parse(NAME, TIME, OPEN, "ping  3 samples [reqs]")

    assert known(rows)["open"] == 39
    assert reasons(rejects) == [(4, "unknown counter ping")]


def test_a_truncated_line_is_rejected_and_its_neighbours_survive():
    rows, rejects, account = parse(NAME, TIME, CUT_CLOSE, "", OPEN)

    assert rows.select("open", "close").rows() == [(39, None)]
    assert rejects.rows() == [(3, CUT_CLOSE, md_stats.NOT_MD_STATS)]
    assert account == Account(lines=5, accepted=3, rejected=1, irrelevant=1)


def test_a_sum_at_the_end_of_the_file_may_be_truncated():
    content = text(TIME, OPEN) + b"write_bytes               3 samples [bytes] 4096 4096 122"

    rows, rejects, _ = read(md_stats, TARGET_COUNTERS, content)

    assert rows.select("open", "write_bytes").rows() == [(39, None)]
    assert reasons(rejects) == [(3, stats.CUT)]


def test_a_number_that_is_too_large_is_rejected():
    _, rejects, _ = parse(TIME, "open 9223372036854775808 samples [reqs]")

    assert reasons(rejects) == [(2, "number too large")]


def test_a_duplicate_line_is_rejected():
    rows, rejects, _ = parse(NAME, TIME, OPEN, OPEN.replace("39", "40"), TIME)

    assert rows["open"].to_list() == [39]
    assert reasons(rejects) == [(line, "duplicate line in the entry") for line in (4, 5)]


@pytest.mark.parametrize("name", [NAME, ""])
@pytest.mark.parametrize("chunk_bytes", [16, 1 << 25])
def test_a_second_md_stats_of_a_target_is_rejected(name, chunk_bytes):
    rows, rejects, _ = parse(name, TIME, OPEN, name, TIME, CLOSE, chunk_bytes=chunk_bytes)

    assert rows.select("open", "close").rows() == [(39, None)]
    assert reasons(rejects) == [(line, md_stats.SECOND_BLOCK) for line in (5, 6)]


@pytest.mark.parametrize("chunk_bytes", [100, 1 << 25])
def test_the_number_of_lines_of_an_md_stats_is_bounded(chunk_bytes):
    rows, rejects, _ = parse(
        NAME, OPEN, *["junk"] * (BLOCK_LINES - 2), CLOSE, chunk_bytes=chunk_bytes
    )

    assert rows.select("open", "close").rows() == [(39, None)]
    assert reasons(rejects)[-1] == (BLOCK_LINES + 1, "outside any entry")


# -- properties ---------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        NAME,
        NAME + TIME,
        "mdt.atlas-MDT0001.md_stats=",
        "mds.MDS.mdt.stats=",
        "version=2.12.9",
        TIME,
        "start_time                9538.681113628 secs.nsecs",
        OPEN,
        CLOSE,
        CUT_CLOSE,
        "req_qdepth                102 samples [reqs] 0 0 0 0",
        "",
        "junk",
    ]
)
TEXTS = st.tuples(
    st.lists(st.one_of(LINES, st.text(max_size=20).filter(lambda t: "\n" not in t)), max_size=40),
    st.sampled_from(["", "\n"]),
).map(lambda parts: ("\n".join(parts[0]) + parts[1]).encode())


@given(st.binary(max_size=300))
@settings(max_examples=examples(50))
def test_random_bytes_never_raise(content):
    content = text(NAME, TIME) + content

    _, rejects, account = read(md_stats, TARGET_COUNTERS, content)

    assert account.lines == account.accepted + account.rejected + account.irrelevant
    assert account.rejected == rejects.height


@pytest.mark.long
@given(TEXTS, st.integers(1, 400))
@settings(max_examples=examples(50))
def test_chunk_boundaries_do_not_matter(content, chunk_bytes):
    rows, rejects, account = read(md_stats, TARGET_COUNTERS, content)

    chunked_rows, chunked_rejects, chunked_account = read(
        md_stats, TARGET_COUNTERS, content, chunk_bytes
    )

    assert account.lines == account.accepted + account.rejected + account.irrelevant
    assert account.rejected == rejects.height
    assert_frame_equal(chunked_rows, rows)
    assert_frame_equal(chunked_rejects, rejects)
    assert chunked_account == account


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(
    st.lists(
        st.tuples(
            st.integers(10**15 + 1, 4 * 10**15),
            st.dictionaries(st.sampled_from(METADATA_OPERATIONS), st.integers(1, 2**53 - 1)),
        ),
        max_size=4,
    ),
    st.sampled_from(["[reqs]", "[usecs] 1 20538 84170 1096533070", "[usec] 1 20538 84170"]),
    st.integers(10, 35),
    st.integers(1, 1000),
)
@settings(max_examples=examples(50))
def test_generated_output_of_any_version_is_parsed_exactly(blocks, tail, width, chunk_bytes):
    lines, expected = [], []
    for number, (us, counters) in enumerate(blocks):
        target = f"atlas-MDT{number:04x}"
        snapshot_at = EPOCH + timedelta(microseconds=us)
        times = {f"{name}_us": 84170 for name in counters if "usec" in tail}
        expected.append(
            {
                "line": len(lines) + 1,
                "target": target,
                "snapshot_at": snapshot_at,
                **counters,
                **times,
            }
        )
        lines += [
            f"mdt.{target}.md_stats=",
            f"{'snapshot_time':<{width}} {us // 10**6}.{us % 10**6} secs.usecs",
            *(f"{name:<{width}} {n} samples {tail}" for name, n in counters.items()),
        ]

    rows, rejects, account = parse(*lines, chunk_bytes=chunk_bytes)

    assert rejects.rows() == []
    assert account == Account(lines=len(lines), accepted=len(lines))
    assert_frame_equal(rows, TARGET_COUNTERS.frame(expected))
